"""The reliability of chances and of the forecast's intervals, on curves known to the end.

    python benchmarks/chances.py [--tasks FILE] [--data DIR] [--family lcbench,taskset,recorded|all]
                                 [--split develop|report|all] [--trials 10,16] [--workers 2,8]
                                 [--seeds 2] [--json FILE] [--quick]

Studies run as in `anytime.py`, whose tasks and halves these are. At twelve moments of each, the
search gives every paused trial a chance to end better than the leader. Such looks are
gathered by that chance, and the share of them that truly ends better stands beside it: early in
the study, in its first half, and late. The truth is the curve's end, also of trials that never went
there.

The second table has the 90% intervals of trials that are not complete: how many of the true ends
lie beyond each side, of which a twentieth should.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported

from hpsearch.brain.study import Study
from hpsearch.domain.facts import Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.search.proposals import forecast_of
from races import ours
from races.curves import METRIC, Task
from races.race import Terms, moments
from races.schedule import SPLITS, split, tasks_of
from simulation.running import simulate
from tables import arguments, show, write
from trials.contract import Diverged

BINS = (0.0, 0.01, 0.03, 0.07, 0.15, 0.3, 0.5, 1.0)
"""The ends of the ranges that chances are gathered in."""
LOOKS = 12
"""The moments of a study at which its trials are looked at."""
FEWEST = 20
"""The fewest looks that make a row."""


@dataclass(frozen=True)
class Look:
    """One paused trial at one moment."""

    family: str
    late: bool
    chance: float
    better: bool


@dataclass(frozen=True)
class Interval:
    """The 90% interval of one trial at one moment: the sides on which the truth lies beyond it."""

    family: str
    late: bool
    beyond_better: bool
    beyond_worse: bool


@dataclass
class Seen:
    """Everything that was looked at."""

    looks: list[Look]
    intervals: list[Interval]


def watch_study(task: Task, terms: Terms, seed: int, seen: Seen) -> None:
    """Run one study, and look at its trials."""
    curves = task.curves()
    ends = moments(task, terms)
    due = list(ends[:: max(1, len(ends) // LOOKS)])
    truth: dict[int, float] = {}

    def end_of(number: int, params: Mapping[str, Any]) -> float:
        if number not in truth:
            truth[number] = _end(task, curves, params)
        return truth[number]

    def look(study: Study, changes: Changes, now: float) -> None:
        if not due or now < due[0]:
            return
        while due and now >= due[0]:
            due.pop(0)
        history = study.history
        forecast = forecast_of(spec, history)
        outlook = None if forecast is None else forecast.outlook(fit=False)
        if outlook is None:
            return
        trials = [
            trial
            for trial in history.trials
            if trial.number in outlook.known
            and trial.reports
            and trial.role is not Role.CONFIRM
            and trial.state is not State.FAILED
        ]
        numbers = [trial.number for trial in trials]
        late = now > ends[-1] / 2
        leader = outlook.leader(numbers)
        best = end_of(leader, history.trials[leader].params)
        paused = [t for t in trials if t.state is State.PAUSED and t.number != leader]
        promotion = study._context.searcher.promotion
        assert promotion is not None
        for number, chance in promotion.chances(paused).items():
            better = end_of(number, history.trials[number].params) < best
            seen.looks.append(Look(task.family, late, chance, better))
        for trial, (_, _, low, high) in zip(trials, outlook.values(numbers), strict=True):
            if trial.state is not State.COMPLETE:
                end = end_of(trial.number, trial.params)
                seen.intervals.append(Interval(task.family, late, end < low, end > high))

    spec = ours.study_file(task, terms, seed, {})
    simulate(spec, curves, terms.workers, moments=ends, watch=look)


def _end(task: Task, curves: Any, params: Mapping[str, Any]) -> float:
    try:
        return float(curves.measure(params, 0, task.total)[METRIC])
    except Diverged:
        return math.inf


def groups(found: Sequence[Any]) -> Iterator[tuple[str, str, list[Any]]]:
    """The looks by family and half of the study, then all together."""
    families = [*sorted({each.family for each in found}), "all"]
    for family in families:
        for late in (False, True):
            chosen = [e for e in found if e.late is late and family in (e.family, "all")]
            yield family, "late" if late else "early", chosen


def chance_rows(looks: Sequence[Look]) -> list[dict[str, Any]]:
    """For each group and range of chances: the mean that was stated, and the share that came."""
    rows = []
    for family, half, chosen in groups(looks):
        for low, high in pairwise(BINS):
            within = [e for e in chosen if low <= e.chance < high or e.chance == high == 1.0]
            if len(within) >= FEWEST:
                stated = fmean(each.chance for each in within)
                came = fmean(each.better for each in within)
                row = {"stated": stated, "came": came, "looks": len(within)}
                rows.append({"family": family, "half": half, **row})
    return rows


def interval_rows(intervals: Sequence[Interval]) -> list[dict[str, Any]]:
    """For each group, the shares of truths beyond the sides of their intervals."""
    rows = []
    for family, half, chosen in groups(intervals):
        if len(chosen) >= FEWEST:
            better = fmean(each.beyond_better for each in chosen)
            worse = fmean(each.beyond_worse for each in chosen)
            row = {"beyond the better side": better, "beyond the worse side": worse}
            rows.append({"family": family, "half": half, **row, "looks": len(chosen)})
    return rows


def main() -> None:
    """Run the studies and print both tables."""
    given = arguments(
        __doc__,
        {"family": ["recorded"], "seeds": 1, "trials": [10], "workers": [2]},
        tasks=Path,
        data=Path,
        family=["all"],
        split=SPLITS,
        trials=[10, 16],
        workers=[2, 8],
        seeds=2,
    )
    tasks = split(tasks_of(given.family, given.tasks, given.data), given.split)
    tasks = tasks[:2] if given.quick else tasks
    seen = Seen([], [])
    for task in tasks:
        for trials in given.trials:
            for workers in given.workers:
                for seed in range(given.seeds):
                    watch_study(task, Terms(trials, workers), seed, seen)
    chances, intervals = chance_rows(seen.looks), interval_rows(seen.intervals)
    show("The probability to beat the leader: stated, and how often it came", chances, None)
    print()
    show("True ends beyond the sides of 90% intervals (0.05 each is right)", intervals, None)
    write([*chances, *intervals], given.json)


if __name__ == "__main__":
    main()
