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
    assert left(end=9.0, pace=20.0)[0] > 1.3 * seconds
