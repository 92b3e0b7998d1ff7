"""The time that a study is said to take still, at each third, compared with what it then took."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Trial
from hpsearch.search.time_left import TimeLeft
from support.studies.small import Simulation, spec_with


@dataclass
class Costly:
    """Accuracies that rise at different speeds, of configurations that cost up to five times as
    much as others."""

    def measure(self, params: dict[str, Any], seed: int, resource: float) -> dict[str, float]:
        x = params["x"]
        noise = 0.01 * math.sin(seed % 1000 + resource)
        return {"accuracy": (1 - (x - 0.4) ** 2) * (1 - math.exp(-resource / (1 + 3 * x))) + noise}

    def seconds(self, params: dict[str, Any], resource: float) -> float:
        return resource * 20.0 * (1 + 4 * params["x"])


class Even(Costly):
    """The same, at one cost for all."""

    def seconds(self, params: dict[str, Any], resource: float) -> float:
        return resource * 60.0


ONE = {"per_trial": {"epochs": 9}}
STUDIES: dict[str, dict[str, Any]] = {
    "trials": {"budget": {"trials": 24, **ONE}},
    "few trials": {"budget": {"trials": 6, **ONE}},
    "no pruner": {"budget": {"trials": 12, **ONE}, "search": {"pruner": "none"}},
    "median": {"budget": {"trials": 24, **ONE}, "search": {"pruner": "median"}},
    "repeats": {"budget": {"trials": 12, **ONE}, "search": {"confirm": {"top": 2, "seeds": 2}}},
    "gpu hours": {"budget": {"gpu_hours": 2.0, **ONE}},
    "wall clock": {"budget": {"wall_clock": "1h", **ONE}},
}
THIRDS = (1 / 3, 2 / 3)


def ratios(changes: dict[str, Any], workers: int, seed: int) -> list[float]:
    """What a study was said to take still, over what it took, at each third; without those where
    nothing was said."""
    search = {"sampler": "random", **changes.get("search", {})}
    objective = {"metric": "accuracy", "direction": "maximize"}
    spec = spec_with(**{**changes, "search": search, "seed": seed, "objective": objective})
    simulation = Simulation(spec, curves=Costly(), workers=workers, cold_s=30.0, warm_s=2.0)
    said: list[tuple[float, float | None]] = []
    while not simulation.study.finished:
        simulation.tick()
        now = simulation.executor.now
        left = simulation.study.seconds_left(now)
        said.append((now, left))
    end = simulation.executor.now
    found = []
    for third in THIRDS:
        now, left = min(said, key=lambda each: abs(each[0] - third * end))
        if left is not None and end > now:
            found.append(left / (end - now))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [1, 4])
def test_the_time_left_is_mostly_within_a_factor_of_one_and_a_half(workers):
    """As a share of all studies: in a single one much depends on what the last trials show."""
    found = [ratio for each in STUDIES.values() for ratio in ratios(each, workers, seed=11)]
    near = [ratio for ratio in found if 1 / 1.5 <= ratio <= 1.5]
    assert len(found) >= len(STUDIES)
    assert len(near) >= 0.6 * len(found), sorted(found)


def test_nothing_is_said_before_anything_is_known():
    spec = spec_with()
    assert TimeLeft(spec, [], ["cpu"] * 2).seconds(0.0, 0.0) is None
    simulation = Simulation(spec)
    simulation.tick()
    assert simulation.study.seconds_left(simulation.executor.now) is None
    simulation.run()
    assert simulation.study.seconds_left(simulation.executor.now) is None, "it has ended"


def test_a_study_takes_at_least_a_full_training_however_many_workers_there_are():
    spec = spec_with(budget={"trials": 8, **ONE})
    work_s, _ = TimeLeft(spec, (), [None] * 8).in_all_s(pace=10.0, start_up_s=0.0)
    assert 90.0 <= work_s <= 180.0


def test_where_a_start_is_dear_or_nothing_is_kept_no_pause_is_expected():
    spec = spec_with(budget={"trials": 24, **ONE})

    def starts_s(start_up_s: float, *, keeps: bool = True) -> float:
        time_left = TimeLeft(spec, (), [None])
        training_s, _ = time_left.in_all_s(10.0, 0.0, keeps and start_up_s < 100)
        work_s, _ = time_left.in_all_s(10.0, start_up_s, keeps)
        return (work_s - training_s) / start_up_s

    assert starts_s(1.0) > 30
    assert starts_s(1.0, keeps=False) == pytest.approx(24)
    assert starts_s(1000.0) == pytest.approx(24)


def test_the_range_is_wide_where_much_is_undecided_and_says_why():
    pruned = TimeLeft(spec_with(budget={"trials": 24, **ONE}), (), [None])
    whole = TimeLeft(spec_with(**STUDIES["no pruner"]), (), [None])
    assert pruned.spread(60.0) > whole.spread(60.0) > 0
    assert "how many trials go on" in pruned.depends
    assert "how many trials go on" not in whole.depends
    early = spec_with(
        **STUDIES["no pruner"], task={"kind": "command", "run": "a {x}", "ends_early": True}
    )
    assert "how early they end" in TimeLeft(early, (), [None]).depends


def test_a_limit_of_time_is_the_most_that_a_study_takes():
    objective = {"metric": "accuracy", "direction": "maximize"}
    limited = spec_with(**STUDIES["wall clock"], objective=objective)
    simulation = Simulation(limited, curves=Costly(), workers=2)
    while simulation.executor.now < 1200.0:
        simulation.tick()
    now = simulation.executor.now
    spec, trials = simulation.study.spec, simulation.study.history.trials
    time_left = TimeLeft(spec, trials, [None] * 2)
    seconds = time_left.seconds(now, now)
    low, high = time_left.between(seconds)
    assert low < seconds == high == 3600.0 - now
    assert time_left.depends == ["how much longer other configurations take"]


@pytest.mark.parametrize("name", ["trials", "no pruner", "repeats", "wall clock"])
def test_the_whole_is_known_from_what_one_trial_takes(name):
    """Of a study whose trials all cost as much as the one that was measured."""
    objective = {"metric": "accuracy", "direction": "maximize"}
    spec = spec_with(**{**STUDIES[name], "seed": 11, "objective": objective})
    simulation = Simulation(spec, curves=Even(), workers=2, warm_s=2.0)
    simulation.run()
    took_s = simulation.executor.now
    pace = Even().seconds({}, 1.0)
    work_s, limit_s = TimeLeft(spec, (), [None] * 2).in_all_s(pace, start_up_s=2.0)
    said_s = min(each for each in (work_s, limit_s) if each is not None)
    assert 1 / 1.5 <= said_s / took_s <= 1.5


def test_starts_after_pauses_are_expected_where_trials_pause_alone():
    def starts(pause: bool) -> float:
        search = {"pruner": {"kind": "promotion", "pause": pause}}
        spec = spec_with(budget={"trials": 24, **ONE}, search=search)
        work_s, _ = TimeLeft(spec, (), [None]).in_all_s(0.0, start_up_s=60.0)
        return work_s / 60.0

    assert starts(pause=False) == pytest.approx(24)
    assert starts(pause=True) > 30


def test_where_programs_end_by_themselves_trials_to_come_end_there_too():
    spec = spec_with(budget={"trials": 10, **ONE})

    def left(end: float, pace: float) -> tuple[float, float, float]:
        trials = []
        for number in range(5):
            attempt = Attempt(number, 1, "w", started=0.0, ended=end * pace)
            trial = Trial(number, State.COMPLETE, {}, resource=end)
            trial.attempts.append(attempt)
            trials.append(trial)
        time_left = TimeLeft(spec, trials, [None])
        seconds = time_left.seconds(0.0, 5 * end * pace)
        return seconds, *time_left.between(seconds)

    seconds, low, high = left(end=5.0, pace=20.0)
    assert 5 * 20.0 < seconds <= 5 * 5 * 20.0
    assert low < seconds < high
    assert left(end=9.0, pace=20.0)[0] > 1.15 * seconds
