"""What is said of a study before it runs: its rungs, its time and money, and its disk."""

from typing import Any

import pytest

from hpsearch.brain.retention import BEST, WAITING
from hpsearch.study_file.models import StudySpec
from hpsearch.views.forecast import (
    Capacity,
    CheckpointSize,
    _full_training,
    _limits,
    _search,
    _workers,
    checkpoint_warnings,
    peak_bytes,
    sentence,
)
from support.studies.small import spec_with
from unit.brain.test_retention import GIGABYTE

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


def test_rungs_are_levels_of_the_budget_with_the_share_that_goes_on():
    assert rungs() == "at 1 and 3 of 9 epochs; one trial in 3 goes on from each at first"
    assert rungs(52) == "at 3, 9 and 27 of 52 epochs; one trial in 3 goes on from each at first"
    four = rungs(16, pruner=pruner(eta=4, first_rung=4))
    assert four == "at 4 of 16 epochs; one trial in 4 goes on from it at first"
    warm = rungs(warm_start="auto")
    assert warm == "at 1 and 3 of 9 epochs; at least one trial in 3 goes on from each"


@pytest.mark.parametrize("search", [{"pruner": "none"}, {"pruner": "median"}])
def test_without_rungs_nothing_is_said_of_them(search):
    assert rungs(**search) is None
    assert rungs(pruner=pruner(first_rung=5)) is None


def test_a_full_training_costs_time_and_where_they_are_used_gpu_hours_and_money():
    assert in_full(MEASURED) == "about 1 h"
    assert in_full(MEASURED, CLUSTER) == "about 1 h, 1 GPU hour"
    assert in_full(MEASURED, resources={"gpu": 0.5}) == "about 1 h, 0.5 GPU hours"
    limited = in_full(MEASURED, budget={"gpu_hours": 4})
    assert limited == "about 1 h, 1 hour of compute time"
    priced = in_full(MEASURED, CLUSTER, budget={"cost_per_gpu_hour": 2.5})
    assert priced == "about 1 h, 1 GPU hour, a cost of 2.5"
    prices = {"cost_per_gpu_hour": {"A100": 2.5, "T4": 0.5}}
    assert in_full(MEASURED, CLUSTER, budget=prices).endswith("a cost of 0.5 to 2.5")
    start_up = in_full({**MEASURED, "start_up_seconds": 600.0})
    assert start_up == "about 1 h 10 min"
    assert in_full({}, budget={"per_trial": {"seconds": 90}}) == "about 1 min 30 s"


def test_where_no_pace_is_known_it_says_what_would_tell():
    assert in_full({}) == "its time is not known: a first report would tell, and none has arrived"
    asked = in_full({}, task={"kind": "ask"})
    assert asked == "its time is not known: a trial that was asked for must report first"


@pytest.mark.parametrize(
    ("prices", "most", "rate"),
    [(2.5, "1 h", "2.5"), ({"A100": 2.5, "T4": 0.5}, "5 h", "A100=2.5 T4=0.5")],
)
def test_a_limit_on_money_lasts_as_long_as_the_cheapest_gpus(prices, most, rate):
    budget = {"cost": 5, "cost_per_gpu_hour": prices, "per_trial": {"epochs": 9}}
    spec = spec_with(budget=budget)
    said = f"the study will take at most {most} on 2 workers: its budget ends it"
    assert sentence(spec, {}, 2) == said
    assert _limits(spec) == {"cost": f"at most 5, at {rate} per GPU hour"}


ONE = CheckpointSize(whole_bytes=3 * GIGABYTE, weights_bytes=GIGABYTE)


def study(trials: int = 1000, **changes: Any) -> StudySpec:
    return spec_with(budget={"trials": trials, "per_trial": {"epochs": 9}}, **changes)


def gigabytes(spec: StudySpec, workers: int = 2) -> float:
    return peak_bytes(spec, ONE, workers) / GIGABYTE


def test_trials_that_run_wait_and_ended_add_up_and_a_limit_holds_but_for_what_runs(tmp_path):
    running = 2 * ((2 + 2) * 3 + 1)
    assert gigabytes(study()) == running + WAITING * (3 + 1) + BEST * 1
    assert gigabytes(study(trials=5)) == running + 5 * (3 + 1)
    assert gigabytes(study(search={"pruner": "none"})) == running + BEST * 1
    assert gigabytes(study(settings={"keep_checkpoints": 1})) == gigabytes(study()) - 2 * 3
    confirm = {"confirm": {"top": BEST + 5, "seeds": 1}}
    assert gigabytes(study(search=confirm)) == gigabytes(study()) + 5
    assert gigabytes(study(checkpoints={"max_gb": 50})) == 50
    assert gigabytes(study(checkpoints={"max_gb": 5})) == 26
    small = CheckpointSize(whole_bytes=300.0, weights_bytes=100.0)
    (told,) = checkpoint_warnings(study(checkpoints={"max_gb": 1e-7}), small, 4, str(tmp_path))
    assert told.startswith(
        "checkpoints.max_gb: 1e-07 GB is less than the 5.2e-06 GB that running trials take"
    )


def test_a_disk_without_room_is_told_with_what_to_do(tmp_path):
    huge = CheckpointSize(whole_bytes=1e18, weights_bytes=3e17)
    (told,) = checkpoint_warnings(study(), huge, 1, str(tmp_path / "not" / "there" / "yet"))
    assert "checkpoints may take 137300000000 GB" in told
    advice = (
        "GB left: choose another folder with --checkpoints, "
        "or a limit with checkpoints: {max_gb: ...}"
    )
    assert advice in told
    assert list(checkpoint_warnings(study(), CheckpointSize(3.0, 1.0), 1, str(tmp_path))) == []
    assert list(checkpoint_warnings(study(), huge, 1, "memory://somewhere")) == []


@pytest.mark.parametrize(
    ("resources", "capacity", "said"),
    [
        ({}, Capacity(cpus=8, gpus=2), "at most 4 (8 cores for 2 GPUs)"),
        ({}, Capacity(cpus=64, gpus=1), "at most 16"),
        ({"workers": 3}, Capacity(cpus=64, gpus=1), "at most 3 (3 workers in all)"),
        ({"workers": 30, "cpu": 4}, Capacity(cpus=8, gpus=2), "at most 1 (8 cores for 2 GPUs)"),
        ({"workers": 3}, None, "at most 3 (3 workers in all), on the cluster"),
        ({}, Capacity(cpus=2, gpus=0), "as many as fit; 2 fit on this machine (2 cores, 0 GPUs)"),
    ],
)
def test_it_is_said_how_many_trials_may_share_a_gpu(resources, capacity, said):
    spec = spec_with(resources={"gpu": "share", **resources})
    assert _workers(spec.resources, capacity).endswith(said)
