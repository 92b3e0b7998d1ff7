"""Trials spared from pausing, and what a database then says of the rungs of its study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from driven_studies import drive
from hpsearch.domain.facts import DecisionKind, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.seeds import is_spared
from hpsearch.ranking.trust import Basis, RungTrust, RungVerdict
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.trust import StudyTrust, study_trust
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from studies import Bowl, Simulation, spec_with

EPOCHS = 9.0


@dataclass
class Drawn:
    """Losses that fall in the same way, plus what `shown` says of a configuration: its quality, a
    luck of its own at each epoch, and the epoch."""

    shown: Callable[[float, float, float], float]

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        draw = np.random.default_rng(int(params["x"] * 2**52))
        quality, *luck = draw.normal(size=11)
        shown = self.shown(quality, luck[int(resource)], resource)
        return {"loss": 1000 / (1 + resource) + shown}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return 10.0 * resource


def perfect(quality: float, luck: float, epoch: float) -> float:
    return quality


def useless(quality: float, luck: float, epoch: float) -> float:
    return quality if epoch == EPOCHS else luck


def misleading(quality: float, luck: float, epoch: float) -> float:
    return quality if epoch == EPOCHS else -quality


def study(trials: int, spare: float = 0.0, **changes: Any) -> StudySpec:
    return spec_with(
        search={"sampler": "random", "spare": spare},
        budget={"trials": trials, "per_trial": {"epochs": 9}},
        **changes,
    )


def trust_in(url: str) -> StudyTrust:
    with closing(Store.open(url)) as store, store.reading() as connection:
        return study_trust(connection, find_study(connection, "plain"))


def rungs_after(url: str, spec: StudySpec, curves: Any) -> list[RungTrust]:
    drive(url, spec, curves)
    return trust_in(url).rungs


def full(history: Any) -> int:
    return sum(trial.state is State.COMPLETE for trial in history.trials)


def test_with_half_of_the_trials_spared_about_half_are_trained_in_full() -> None:
    done = Simulation(study(80, spare=0.5)).run()
    spared = [trial for trial in done.history.trials if is_spared(1, trial.number, 0.5)]
    assert 30 <= len(spared) <= 50
    assert all(trial.state is State.COMPLETE for trial in spared)
    assert full(done.history) >= len(spared)
    assert full(done.history) <= 60
    assert full(Simulation(study(80)).run().history) <= 30


def test_what_is_spared_says_so_and_never_pauses() -> None:
    done = Simulation(study(40, spare=0.3)).run()
    decisions = [each for changes in done.written for each in changes.decisions]
    spared = [each for each in decisions if each.why == "spared, to measure what this rung tells"]
    assert spared
    for decision in spared:
        assert decision.kind is DecisionKind.CONTINUE
        assert is_spared(1, decision.trial, 0.3)
    assert any(decision.against for decision in spared), "the trials nearest to it"
    paused = {each.trial for each in decisions if each.kind is DecisionKind.PAUSE}
    assert not [number for number in paused if is_spared(1, number, 0.3)]


def test_nothing_is_spared_unasked_nor_what_the_search_did_not_draw() -> None:
    for spec in (study(30), study(30, spare=0.5, enqueue=[{"x": 0.9 + n / 100} for n in range(8)])):
        done = Simulation(spec).run()
        decisions = [each for changes in done.written for each in changes.decisions]
        roles = {trial.number: trial.role for trial in done.history.trials}
        spared = {roles[each.trial] for each in decisions if each.why.startswith("spared")}
        assert spared == ({Role.SEARCH} if spec.search.spare else set())


def test_a_trial_that_diverges_is_not_measured() -> None:
    done = Simulation(study(30, spare=0.5), curves=Bowl(diverges=0.5)).run()
    for trial in done.history.trials:
        assert trial.state is (State.FAILED if trial.params["x"] > 0.5 else trial.state)


@pytest.mark.parametrize("stop_after", [5, 17, 40])
def test_a_resumed_study_spares_what_it_would_have_spared(sqlite_url: str, stop_after: int) -> None:
    spec = study(30, spare=0.3)
    drive(sqlite_url, spec, Bowl(), stop_after=stop_after)
    drive(sqlite_url, spec, Bowl(), resume=True)
    with closing(Store.open(sqlite_url)) as store:
        resumed = store.load("plain")
    through = Simulation(spec, workers=1).run().history
    assert len(resumed.trials) == 30
    for trial in resumed.trials:
        if is_spared(spec.seed, trial.number, 0.3):
            assert trial.state is State.COMPLETE
    assert [trial.state for trial in resumed.trials] == [trial.state for trial in through.trials]


def test_perfect_rungs_are_trusted(database_url: str) -> None:
    for rung in rungs_after(database_url, study(60), Drawn(perfect)):
        assert rung.correlation is not None
        assert rung.correlation.value == pytest.approx(1.0)
        assert rung.verdict is RungVerdict.TELLS
        if rung.paused:
            assert rung.wrongly_paused is not None
            assert rung.wrongly_paused.high < 0.05


def test_useless_rungs_are_not_trusted(tmp_path: Path) -> None:
    found = []
    for seed in range(1, 4):
        url = f"sqlite:///{tmp_path}/{seed}.db"
        lowest, _ = rungs_after(url, study(60, spare=0.3, seed=seed), Drawn(useless))
        assert lowest.correlation is not None
        assert lowest.correlation.spared
        assert lowest.verdict is not RungVerdict.TELLS
        wrongly = lowest.wrongly_paused
        if wrongly is None:  # the study has found out, too, and lets all of them go on
            assert lowest.paused < 4
        else:
            assert wrongly.basis is Basis.SPARED
        found.append(lowest.correlation)
    assert abs(fmean(each.value for each in found)) < 0.3
    assert sum(each.low < 0 < each.high for each in found) >= 2


def test_rungs_that_mislead_are_found_out_by_spared_trials(sqlite_url: str) -> None:
    lowest, _ = rungs_after(sqlite_url, study(60, spare=0.3), Drawn(misleading))
    assert lowest.correlation is not None
    assert lowest.correlation.high < 0
    assert lowest.verdict is RungVerdict.LITTLE
    assert lowest.wrongly_paused is not None
    assert lowest.wrongly_paused.share > 0.5


def test_a_young_study_says_that_it_is_too_early_to_tell(sqlite_url: str) -> None:
    drive(sqlite_url, study(60), Drawn(perfect), stop_after=10)
    trust = trust_in(sqlite_url)
    assert [rung.level for rung in trust.rungs] == [1.0, 3.0]
    assert {rung.verdict for rung in trust.rungs} == {RungVerdict.UNKNOWN}


@pytest.mark.parametrize(
    "changes",
    [
        {"search": {"sampler": "random", "pruner": "none"}},
        {"search": {"sampler": "random", "pruner": "median"}},
        {
            "search": {"sampler": "random", "pruner": "promotion"},
            "objective": [
                {"metric": "loss", "direction": "minimize"},
                {"metric": "loss2", "direction": "minimize"},
            ],
        },
    ],
    ids=["none", "median", "several objectives"],
)
def test_without_rungs_of_one_objective_nothing_is_said(
    sqlite_url: str, changes: dict[str, Any]
) -> None:
    class Both(Bowl):
        def measure(
            self, params: Mapping[str, Any], seed: int, resource: float
        ) -> Mapping[str, float]:
            loss = super().measure(params, seed, resource)["loss"]
            return {"loss": loss, "loss2": -loss}

    drive(sqlite_url, spec_with(**changes), Both())
    assert trust_in(sqlite_url).rungs == []


def test_limits_decide_the_standing_that_is_compared(sqlite_url: str) -> None:
    """All that exceed the limit are behind all that do not, at the rung and at the end."""

    class Limited(Drawn):
        def measure(
            self, params: Mapping[str, Any], seed: int, resource: float
        ) -> Mapping[str, float]:
            size = params["x"]
            return {"loss": 1000 / (1 + resource) - size, "size": size}

    spec = spec_with(
        search={"sampler": "random"},
        budget={"trials": 40, "per_trial": {"epochs": 9}},
        constraints={"size": {"max": 0.5}},
    )
    for rung in rungs_after(sqlite_url, spec, Limited(perfect)):
        assert rung.correlation is not None
        assert rung.correlation.value == pytest.approx(1.0)
