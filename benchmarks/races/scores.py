"""The arithmetic of a set of races: mean regrets, ranks, paired differences, lost tasks."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from races.race import MARKS, Result, Terms

PERCENTS = (5, 10, 25, 50, 100)
"""The marks that tables show, in percent of the budget."""

OURS = "hpsearch"
RANDOM = "random"
CLEARLY = 2.0
"""How many standard errors make a difference clear."""


@dataclass(frozen=True)
class Field:
    """The races of one family on the same terms: every method on the same tasks and seeds."""

    family: str
    terms: Terms
    runs: Mapping[str, Sequence[Result]]
    """The results of each method, in the order of the methods."""
    incomplete: Mapping[str, int]
    """How many races each method lacks that is left out because of it."""

    @property
    def title(self) -> str:
        """What is raced, in words."""
        some = next(iter(self.runs.values()), [])
        tasks, seeds = {run.task for run in some}, {run.seed for run in some}
        return (
            f"{self.family}: {len(tasks)} tasks, {len(seeds)} seeds, "
            f"{self.terms.trials} trials, {self.terms.workers} workers"
        )

    @property
    def results(self) -> list[Result]:
        """The results of all methods."""
        return [run for runs in self.runs.values() for run in runs]


def fields(results: Iterable[Result], methods: Sequence[str]) -> list[Field]:
    """Results by family and terms, in the order of the results.

    A method that lacks a race which another one has run would be compared on easier or harder
    tasks, so it is left out.
    """
    groups: defaultdict[tuple[str, Terms], list[Result]] = defaultdict(list)
    for result in results:
        groups[result.family, result.terms].append(result)
    return [_field(family, terms, runs, methods) for (family, terms), runs in groups.items()]


def _field(family: str, terms: Terms, runs: list[Result], methods: Sequence[str]) -> Field:
    wanted = {(run.task, run.seed) for run in runs}
    complete: dict[str, list[Result]] = {}
    incomplete: dict[str, int] = {}
    for method in methods:
        own = [run for run in runs if run.method == method]
        lacking = len(wanted - {(run.task, run.seed) for run in own})
        if not lacking:
            complete[method] = own
        elif own:
            incomplete[method] = lacking
    return Field(family, terms, complete, incomplete)


def place(percent: int) -> int:
    """Where a percentage of the budget is in a result's lists."""
    return percent * MARKS // 100 - 1


def standard_error(values: Sequence[float]) -> float:
    """The standard error of a mean; not a number for a single value."""
    if len(values) < 2:
        return math.nan
    return statistics.stdev(values) / math.sqrt(len(values))


def mean_curve(runs: Sequence[Result]) -> list[float]:
    """The mean regret at each mark."""
    return [statistics.mean(run.regret[i] for run in runs) for i in range(MARKS)]


def reached(curve: Sequence[float], target: float) -> float | None:
    """The percentage of the budget at which a mean regret reaches a target; None if never."""
    return next((100.0 * (i + 1) / MARKS for i, value in enumerate(curve) if value <= target), None)


def best_peer(runs: Mapping[str, Sequence[Result]]) -> tuple[str, float] | None:
    """The peer with the lowest mean regret at the end, by either rule, and that regret.

    None without peers.
    """
    final = {}
    for method, own in runs.items():
        if not method.startswith(OURS):
            final[method] = min(mean_curve(rule)[-1] for rule in (own, by_latest(own)))
    return min(final.items(), key=lambda item: item[1], default=None)


def by_latest(runs: Sequence[Result]) -> Sequence[Result]:
    """The same races, judged by the configuration with the best newest value.

    As they are where this is not known: for hpsearch, and in results written before it was.
    """
    return [replace(run, regret=run.latest or run.regret) for run in runs]


def mean_ranks(results: Iterable[Result], methods: Sequence[str]) -> dict[str, dict[int, float]]:
    """The mean rank of each method, from 1, at each percentage; equal regrets share their ranks."""
    races: defaultdict[tuple[str, int], list[Result]] = defaultdict(list)
    for result in results:
        races[result.task, result.seed].append(result)
    ranks: dict[str, dict[int, list[float]]] = {m: {p: [] for p in PERCENTS} for m in methods}
    for runs in races.values():
        for percent in PERCENTS:
            values = {run.method: run.regret[place(percent)] for run in runs}
            for method, value in values.items():
                better = sum(other < value for other in values.values())
                equal = sum(other == value for other in values.values())
                ranks[method][percent].append(better + (equal + 1) / 2)
    return {m: {p: statistics.mean(places) for p, places in of.items()} for m, of in ranks.items()}


def ranks_over_families(of_families: Sequence[Field]) -> dict[str, dict[int, float]]:
    """Mean ranks among the methods that every family has. Families count alike, however many tasks
    they have."""
    methods = [m for m in of_families[0].runs if all(m in field.runs for field in of_families)]
    each = []
    for field in of_families:
        results = [run for method in methods for run in field.runs[method]]
        each.append(mean_ranks(results, methods))
    return {m: {p: statistics.mean(r[m][p] for r in each) for p in PERCENTS} for m in methods}


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences between the regrets of two methods."""

    mean: float
    """Above 0 if the first method is worse."""
    error: float
    """Its standard error; not a number if there is a single pair."""

    @property
    def is_clear(self) -> bool:
        """Whether the first method is worse by more than twice the standard error."""
        return self.mean > CLEARLY * self.error


def difference(runs: Sequence[Result], others: Sequence[Result], percent: int = 100) -> Difference:
    """One method's regret minus another's, paired by task and seed, at a percentage.

    The standard error takes the races as independent: it tells what other seeds would show on the
    same tasks and, roughly, on others like them.
    """
    known = {(other.task, other.seed): other.regret[place(percent)] for other in others}
    pairs = [run.regret[place(percent)] - known[run.task, run.seed] for run in runs]
    return Difference(statistics.mean(pairs), standard_error(pairs))


@dataclass(frozen=True)
class LostTasks:
    """In how many tasks a method ends worse than another one, by the mean over seeds."""

    tasks: int
    worse: int
    clearly: int
    """Worse by more than twice the standard error over seeds."""


def lost_tasks(runs: Sequence[Result], others: Sequence[Result]) -> LostTasks:
    """Compare two methods task by task."""
    tasks = sorted({run.task for run in runs})
    found = []
    for task in tasks:
        own = [run for run in runs if run.task == task]
        found.append(difference(own, [other for other in others if other.task == task]))
    worse = sum(each.mean > 0 for each in found)
    return LostTasks(len(tasks), worse, sum(each.is_clear for each in found))
