"""Studies that start from the results of earlier ones: on the same curves, on others, and again."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.running import SimulatedExecutor, simulate
from hpsearch.domain.facts import EarlierStudy
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.errors import StudyNotFound, UserError
from hpsearch.running.creation.study import create_study
from hpsearch.running.creation.warm_start import MOST_EARLIER, earlier_studies
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.search.curve_model.earlier import OPENINGS
from hpsearch.search.curve_model.forecast import FITTED
from hpsearch.search.samplers.curve_gp import DESIGN
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from support.studies.small import Bowl, brain, budget_of, spec_with

NAMES = ("x", "y", "z", "v")
SPACE = {name: {"type": "float", "low": 0.0, "high": 1.0} for name in NAMES}
GOOD = {"x": 0.3, "y": 0.8, "z": 0.55, "v": 0.15}
ELSEWHERE = {"x": 0.9, "y": 0.1, "z": 0.05, "v": 0.75}


@dataclass
class Valley(Bowl):
    """A bowl in four dimensions whose best place can be moved."""

    shift: float = 0.0
    elsewhere: bool = False

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        best = ELSEWHERE if self.elsewhere else GOOD
        distance = sum((params[name] - best[name] - self.shift) ** 2 for name in NAMES)
        return {"loss": distance + 1 / (1 + resource)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource


def spec_for(seed: int = 0, trials: int = 24, **changes: Any) -> Any:
    usual = {
        "study": "new",
        "space": SPACE,
        "budget": budget_of(trials, 27),
        "seed": seed,
        "search": {"sampler": "curve_gp"},
    }
    return spec_with(**{**usual, **changes})


def finished(
    store: Store, curves: Bowl, seed: int = 0, trials: int = 24, **changes: Any
) -> History:
    """A study that was driven to its end in a database."""
    return driven(store, spec_for(seed, trials, **changes), curves)


def driven(
    store: Store, spec: Any, curves: Bowl, told: Sequence[EarlierStudy] = (), most: int = 10**6
) -> History:
    """A study in a database after so many of its trials, or at its end."""
    history = create_study(store, spec, "", earlier=told)
    return continued(store, history, spec, curves, most)


def continued(
    store: Store, history: History, spec: Any, curves: Bowl, most: int = 10**6
) -> History:
    executor = SimulatedExecutor(curves, trial_budget(spec), 1)
    lease = store.acquire(history.study.id, "test", LEASE_TTL_S)

    def watch(study: Any, changes: Any, now: float) -> None:
        if len(study.history.trials) >= most:
            driver.request_stop()

    driver = Driver(build_study(history, spec), executor, store, lease, watch, executor.clock)
    driver.run()
    store.release(lease)
    return store.load(spec.study)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with closing(Store.open(f"sqlite:///{tmp_path}/studies.db")) as opened:
        yield opened


def proposals(history: History) -> list[dict[str, Any]]:
    return [trial.params for trial in history.trials]


def warm(*names: str, **changes: Any) -> Any:
    return spec_for(search={"warm_start": list(names)}, **changes)


# ------------------------------------------------------------------------------------ what is kept


def test_what_is_told_is_kept_and_outlives_the_study_that_told_it(store):
    before = finished(store, Valley(), study="before")
    spec = warm("before")
    told = earlier_studies(store, spec)
    create_study(store, spec, "", earlier=told)
    store.delete_study(before.study.id)
    kept = store.load("new").study.warm_start
    assert kept == told
    assert kept[0].name == "before"
    assert len(kept[0].trials) == 24
    assert kept[0].trials[0].standing == 0.0


@pytest.mark.thorough
def test_a_study_goes_on_as_it_would_have_without_the_one_that_told_it(store):
    before = finished(store, Valley(), study="before")
    told = earlier_studies(store, warm("before"))
    through = driven(store, warm("before", study="through"), Valley(0.05), told)
    spec = warm("before")
    driven(store, spec, Valley(0.05), told, most=14)
    store.delete_study(before.study.id)
    history = store.load("new")
    assert 14 <= len(history.trials) < 24
    assert history.study.state is StudyState.INTERRUPTED
    again = continued(store, history, spec, Valley(0.05))
    assert len(again.trials) == 24
    assert proposals(again) == proposals(through)


def test_a_proposal_is_the_same_in_a_new_process(store):
    finished(store, Valley(), study="before")
    spec = warm("before")
    driven(store, spec, Valley(0.05), earlier_studies(store, spec), most=16)
    drawn = []
    for _ in range(2):
        study = brain(spec, store.load("new"))
        trial = study.history.add_trial(Trial(len(study.history.trials), State.QUEUED, {}))
        study._context.searcher.proposals.propose(trial)
        drawn.append(trial.params)
    assert drawn[0] == drawn[1]


def test_a_study_that_starts_cold_has_nothing_new_in_its_records(store):
    history = finished(store, Valley(), study="cold")
    assert history.study.warm_start == []
    assert set(history.study.system_attrs[FITTED]) == {"values", "theta"}


# ---------------------------------------------------------------------------------- which are found


def test_auto_finds_the_latest_finished_studies_that_are_alike(store):
    for number in range(MOST_EARLIER + 1):
        finished(store, Valley(), trials=5, study=f"before-{number}")
    finished(store, Valley(), trials=5, study="of-another-task", task={"kind": "other:train"})
    other = {"objective": {"metric": "loss", "direction": "maximize"}}
    finished(store, Valley(), trials=5, study="the-other-way", **other)
    renamed = {f"{name}2": each for name, each in SPACE.items() if name != "x"}
    finished(store, Bowl(), trials=5, study="unlike", space={**renamed, "x": SPACE["x"]})
    driven(store, spec_for(study="stopped", trials=9), Valley(), most=6)
    found = earlier_studies(store, spec_for(search={"warm_start": "auto"}))
    assert [each.name for each in found] == [
        f"before-{number}" for number in range(MOST_EARLIER, 0, -1)
    ]


def test_auto_finds_nothing_in_a_database_without_studies(store):
    assert earlier_studies(store, spec_for(search={"warm_start": "auto"})) == []


def test_a_name_that_is_not_there_is_refused_with_the_nearest(store):
    finished(store, Valley(), trials=5, study="before")
    with pytest.raises(StudyNotFound, match="befor") as refused:
        earlier_studies(store, warm("befor"))
    assert "before" in (refused.value.hint or "")


def test_a_study_that_has_nothing_to_tell_is_refused(store):
    finished(store, Bowl(), trials=5, study="apart", space={"x": {**SPACE["x"]}})
    finished(store, Valley(), trials=3, study="short")
    create_study(store, spec_for(study="running"), "")
    several = [
        {"metric": "loss", "direction": "minimize"},
        {"metric": "size", "direction": "minimize"},
    ]
    create_study(store, spec_for(study="several", objective=several, search={}), "")
    elsewhere = {"space": {"w": SPACE["x"]}}
    with pytest.raises(UserError, match="apart has no 4 trials"):
        earlier_studies(store, warm("apart", **elsewhere))
    with pytest.raises(UserError, match="short has no 4 trials"):
        earlier_studies(store, warm("short"))
    with pytest.raises(UserError, match="running is still running"):
        earlier_studies(store, warm("running"))
    with pytest.raises(UserError, match="several has no single objective"):
        earlier_studies(store, warm("several"))


# ------------------------------------------------------------------------------- what it is worth


def told_of(curves: Bowl, seed: int) -> list[EarlierStudy]:
    with closing(Store.open("sqlite://")) as store:
        finished(store, curves, seed + 100, study="before")
        return earlier_studies(store, warm("before"))


def losses(seed: int, told: Sequence[EarlierStudy]) -> list[float]:
    """The distance to the best place of the best of the first 8, 16 and 24 trials."""
    history = simulate(spec_for(seed), Valley(0.04), 1, earlier=told)
    away = []
    for params in proposals(history):
        away.append(sum((params[name] - GOOD[name] - 0.04) ** 2 for name in NAMES))
    return [min(away[:count]) for count in (8, 16, 24)]


SEEDS = range(3)


@pytest.fixture(scope="module")
def cold() -> Any:
    """(seeds, 3) What studies without earlier ones reach."""
    return np.array([losses(seed, []) for seed in SEEDS])


@pytest.mark.thorough
def test_a_study_like_an_earlier_one_finds_good_configurations_at_once(cold):
    begun = np.array([losses(seed, told_of(Valley(), seed)) for seed in SEEDS])
    assert begun[:, 0].mean() < 0.5 * cold[:, 0].mean()
    assert begun[:, 1].mean() < cold[:, 1].mean()


@pytest.mark.thorough
def test_an_earlier_study_with_its_best_place_elsewhere_costs_little(cold):
    misled = np.array([losses(seed, told_of(Valley(elsewhere=True), seed)) for seed in SEEDS])
    assert misled[:, 2].mean() < cold[:, 0].mean() / 2, "it is at the best place all the same"
    assert misled[:, 2].mean() < cold[:, 2].mean() + 0.02


@pytest.mark.thorough
def test_a_study_stops_believing_what_its_results_contradict():
    told = told_of(Valley(elsewhere=True), 0) + told_of(Valley(), 0)
    history = simulate(spec_for(0), Valley(0.04), 1, earlier=told)
    unlike, alike = history.study.system_attrs[FITTED]["agreements"]
    assert unlike < 0.3 < alike


def test_the_first_proposals_are_those_of_earlier_studies_and_the_others_as_ever():
    told = told_of(Valley(), 0)
    begun = proposals(simulate(spec_for(0), Valley(0.04), 1, earlier=told))
    cold = proposals(simulate(spec_for(0), Valley(0.04), 1))
    known = [trial.params for trial in told[0].trials]
    for params in begun[:OPENINGS]:
        assert min(_apart(params, each) for each in known) < 1e-9
    assert begun[OPENINGS:DESIGN] == cold[OPENINGS:DESIGN]
    assert begun[DESIGN:] != cold[DESIGN:]


def _apart(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return mean(abs(one[name] - other[name]) for name in NAMES)
