"""What a database says of the rungs of its study."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hpsearch.search.ranking.trust import RungTrust, RungVerdict
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.trust import StudyTrust, study_trust
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from support.studies.driven import drive
from support.studies.small import Bowl, budget_of, search_by, spec_with

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


def study(trials: int, **changes: Any) -> StudySpec:
    return spec_with(search={"sampler": "random"}, budget=budget_of(trials), **changes)


def trust_in(url: str) -> StudyTrust:
    with closing(Store.open(url)) as store, store.reading() as connection:
        return study_trust(connection, find_study(connection, "plain"))


def rungs_after(url: str, spec: StudySpec, curves: Any) -> list[RungTrust]:
    drive(url, spec, curves)
    return trust_in(url).rungs


@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)],
    indirect=True,
)
def test_perfect_rungs_are_trusted(database_url):
    for rung in rungs_after(database_url, study(60), Drawn(perfect)):
        assert rung.correlation is not None
        assert rung.correlation.value == pytest.approx(1.0)
        assert rung.verdict is RungVerdict.TELLS


@pytest.mark.thorough
def test_useless_rungs_are_not_trusted(sqlite_url):
    lowest, _ = rungs_after(sqlite_url, study(60), Drawn(useless))
    assert lowest.verdict is not RungVerdict.TELLS


def test_a_young_study_says_that_it_is_too_early_to_tell(sqlite_url):
    drive(sqlite_url, study(60), Drawn(perfect), stop_after=10)
    trust = trust_in(sqlite_url)
    assert [rung.level for rung in trust.rungs] == [1.0, 3.0]
    assert {rung.verdict for rung in trust.rungs} == {RungVerdict.UNKNOWN}


@pytest.mark.parametrize(
    "changes",
    [
        {"search": search_by()},
        {"search": search_by(pruner="median")},
        {
            "search": search_by(pruner="promotion"),
            "objective": [
                {"metric": "loss", "direction": "minimize"},
                {"metric": "loss2", "direction": "minimize"},
            ],
        },
    ],
    ids=["none", "median", "several objectives"],
)
def test_without_rungs_of_one_objective_nothing_is_said(sqlite_url, changes):
    class Both(Bowl):
        def measure(
            self, params: Mapping[str, Any], seed: int, resource: float
        ) -> Mapping[str, float]:
            loss = super().measure(params, seed, resource)["loss"]
            return {"loss": loss, "loss2": -loss}

    drive(sqlite_url, spec_with(**changes), Both())
    assert trust_in(sqlite_url).rungs == []


def test_limits_decide_the_standing_that_is_compared(sqlite_url):
    """All that exceed the limit are behind all that do not, at the rung and at the end."""

    class Limited(Drawn):
        def measure(
            self, params: Mapping[str, Any], seed: int, resource: float
        ) -> Mapping[str, float]:
            size = params["x"]
            return {"loss": 1000 / (1 + resource) - size, "size": size}

    spec = spec_with(
        search={"sampler": "random"}, budget=budget_of(40), constraints={"size": {"max": 0.5}}
    )
    for rung in rungs_after(sqlite_url, spec, Limited(perfect)):
        assert rung.correlation is not None
        assert rung.correlation.value == pytest.approx(1.0)
