"""What is said of a study before it runs: its rungs, its time and money, and its disk."""

import re
from typing import Any

import pytest

from hpsearch.brain.retention import BEST, WAITING
from hpsearch.study_file.models import StudySpec
from hpsearch.views.plan import (
    Capacity,
    CheckpointSize,
    _at_rungs,
    _full_training,
    _limits,
    _rungs,
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
    return _rungs(spec)


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


def told(measured: dict[str, float], workers: int = 2, **changes: Any) -> str:
    budget = {"trials": 9, "per_trial": {"epochs": 9}}
    return sentence(spec_with(**{"budget": budget, **changes}), measured, workers, LAPTOP)


EARLY = {"kind": "command", "run": "a {x}", "ends_early": True}
MEASURED_TWICE = {
    "reported_at": 1.0,
    "reported_after_s": 70.0,
    "start_up_seconds": 60.0,
    "own_pace": 10.0,
    "pace": 10.0,
    "least_pace": 5.0,
    "most_pace": 20.0,
}


def test_a_start_is_not_taken_for_training_and_what_is_not_known_is_a_range():
    assert in_full(MEASURED_TWICE) == "about 2 min 30 s"
    said = told(MEASURED_TWICE, search={"pruner": "none"})
    assert "about 12 min 38 s on 2 workers, between" in said, "9 of 150 s on 2 workers: 5 rounds"
    low, high = re.search(r"between (\d+) min.* and (\d+) min", said).groups()
    assert int(low) < 9
    assert int(high) > 18
    assert "which took 1 min 10 s to 1 of 9 epochs, of which 1 min were its start" in said
    reasons = (
        "what a trial does after its last report and how much longer other configurations take"
    )
    assert said.endswith(f"it depends on {reasons}")
    assert "it depends on how many trials go on, what a" in told(MEASURED_TWICE)
    ended = in_full({**MEASURED_TWICE, "ended_after_s": 200.0})
    assert ended == "about 3 min 20 s", "with what it did after its last report"


def test_the_ends_of_programs_and_a_target_are_what_the_time_depends_on():
    said = told(MEASURED_TWICE, search={"pruner": "none"}, task=EARLY)
    assert "how early they end" in said
    target = {"trials": 9, "target": 0.9, "per_trial": {"epochs": 9}}
    said = told(MEASURED_TWICE, search={"pruner": "none"}, budget=target)
    assert "at most about" in said
    assert "between 0" in said
    assert "when its target is reached" in said


def test_trials_that_keep_all_cores_busy_slow_each_other():
    def minutes(cores: float) -> float:
        said = told({**MEASURED, "cores": cores}, search={"pruner": "none"})
        hours, rest = re.search(r"about (\d+) h(?: (\d+) min)?", said).groups()
        return int(hours) * 60 + int(rest or 0)

    assert minutes(2.0) == pytest.approx(2 * minutes(1.0), rel=0.05)
    assert minutes(0.5) == minutes(1.0)
    slowed = told({**MEASURED, "cores": 2.0})
    assert "how far trials side by side slow each other, here 2.0 times" in slowed


@pytest.mark.parametrize(
    ("task", "pruned", "measured", "said"),
    [
        ({}, pruner(pause=True), {}, "others pause, as the file says"),
        ({}, pruner(pause=False), {}, "others go on, as the file says"),
        ({}, pruner(), {}, "others pause if another start is cheap, else the hopeless ones"),
        (
            {"kind": "command", "run": "a {x}"},
            pruner(),
            {"keeps_state": False},
            "does not use {folder}, so it cannot",
        ),
        (
            {"kind": "command", "run": "{x} {folder}"},
            pruner(),
            {"keeps_state": False},
            "had kept nothing to go on",
        ),
        ({"kind": "a:b"}, pruner(), {"keeps_state": False}, "had kept nothing to go on from"),
        ({"kind": "a:b", "library": "optuna"}, pruner(), {"keeps_state": False}, "begins again"),
        ({}, pruner(), {**MEASURED_TWICE, "start_up_seconds": 1.0}, "their turn comes: another"),
        ({}, pruner(), MEASURED_TWICE, "none pauses: another start takes 1 min, too long beside"),
        ({}, pruner(), {**MEASURED_TWICE, "start_up_seconds": 9.0}, "others pause at 3; elsewhere"),
    ],
)
def test_the_plan_says_in_a_line_what_trials_do_at_a_rung(task, pruned, measured, said):
    spec = spec_with(
        budget={"trials": 9, "per_trial": {"epochs": 9}},
        search={"pruner": pruned},
        task=task or {"kind": "a:b"},
    )
    assert said in _at_rungs(spec, measured)


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
