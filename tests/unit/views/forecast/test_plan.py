"""The rungs of a study and the cost of a full training, as they are said before it runs."""

from __future__ import annotations

from typing import Any

import pytest

from hpsearch.views.forecast.plan import Capacity, _full_training, _search
from support.studies.small import spec_with

MEASURED = {"reported_at": 1.0, "reported_after_s": 400.0, "start_up_seconds": 0.0}
LAPTOP, CLUSTER = Capacity(cpus=2, gpus=0), None


def rungs(epochs: int = 9, **search: Any) -> str | None:
    spec = spec_with(budget={"trials": 9, "per_trial": {"epochs": epochs}}, search=search)
    return _search(spec).get("rungs")


def in_full(measured: dict[str, float], capacity: Capacity | None = LAPTOP, **changes: Any) -> str:
    budget = {"trials": 9, "per_trial": {"epochs": 9}, **changes.pop("budget", {})}
    return _full_training(spec_with(budget=budget, **changes), measured, capacity)


def pruner(**arguments: Any) -> dict[str, Any]:
    return {"kind": "promotion", **arguments}


def test_rungs_are_levels_of_the_budget_with_the_share_that_goes_on() -> None:
    assert rungs() == "at 1 and 3 of 9 epochs; one trial in 3 goes on from each at first"
    assert rungs(52) == "at 3, 9 and 27 of 52 epochs; one trial in 3 goes on from each at first"
    four = rungs(16, pruner=pruner(eta=4, first_rung=4))
    assert four == "at 4 of 16 epochs; one trial in 4 goes on from it at first"
    warm = rungs(warm_start="auto")
    assert warm == "at 1 and 3 of 9 epochs; at least one trial in 3 goes on from each"


@pytest.mark.parametrize("search", [{"pruner": "none"}, {"pruner": "median"}])
def test_without_rungs_nothing_is_said_of_them(search: dict[str, Any]) -> None:
    assert rungs(**search) is None
    assert rungs(pruner=pruner(first_rung=5)) is None


def test_a_full_training_costs_time_and_where_they_are_used_gpu_hours_and_money() -> None:
    assert in_full(MEASURED) == "about 1 h"
    assert in_full(MEASURED, CLUSTER) == "about 1 h, 1 GPU hours"
    assert in_full(MEASURED, resources={"gpu": 0.5}) == "about 1 h, 0.5 GPU hours"
    limited = in_full(MEASURED, budget={"gpu_hours": 4})
    assert limited == "about 1 h, 1 hours of compute time"
    priced = in_full(MEASURED, CLUSTER, budget={"cost_per_gpu_hour": 2.5})
    assert priced == "about 1 h, 1 GPU hours, a cost of 2.5"
    prices = {"cost_per_gpu_hour": {"A100": 2.5, "T4": 0.5}}
    assert in_full(MEASURED, CLUSTER, budget=prices).endswith("a cost of 0.5 to 2.5")
    start_up = in_full({**MEASURED, "start_up_seconds": 600.0})
    assert start_up == "about 1 h 10 min"
    assert in_full({}, budget={"per_trial": {"seconds": 90}}) == "about 1 min 30 s"


def test_where_no_pace_is_known_it_says_what_would_tell() -> None:
    assert in_full({}) == "its time is not known: a first report would tell, and none has arrived"
    asked = in_full({}, task={"kind": "ask"})
    assert asked == "its time is not known: a trial that was asked for must report first"
