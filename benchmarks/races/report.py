"""The tables of a set of races: regrets, paired differences from the yardsticks, mean ranks."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from races.race import MARKS, Result, Terms
from tables import show, standard_error

PERCENTS = (5, 10, 25, 50, 100)
"""The marks that tables show, in percent of the budget."""
OURS = "hpsearch"
YARDSTICKS = {
    "random": "random in full",
    "optuna-tpe": "TPE in full",
    "optuna-hyperband": "TPE, Hyperband",
    "optuna-median": "TPE, median",
    "smac": "SMAC",
    "syne-asha": "ASHA",
    "syne-bohb": "BOHB",
    "syne-mobster": "MOBSTER",
    "syne-hypertune": "Hyper-Tune",
    "syne-dyhpo": "DyHPO",
}
"""The methods that hpsearch must nowhere be behind."""
CLEARLY = 2.0
"""How many standard errors make a difference clear."""
BEHIND, AHEAD = "BEHIND", "ahead"
"""Mark clear differences, to the disadvantage and to the advantage of hpsearch."""


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
        """A line on what is raced."""
        some = next(iter(self.runs.values()), [])
        tasks, seeds = {run.task for run in some}, {run.seed for run in some}
        return (
            f"{self.family}: {len(tasks)} tasks, {len(seeds)} seeds, "
            f"{self.terms.trials} trials, {self.terms.workers} workers"
        )


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
    """The index of a percentage of the budget in a result's lists."""
    return percent * MARKS // 100 - 1


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences between the regrets of two methods; above 0 if the first is
    worse. Its standard error is not a number if there is a single pair."""

    mean: float
    error: float

    def __str__(self) -> str:
        text = f"{self.mean:+.3f} ± {self.error:.3f}"
        if self.mean > CLEARLY * self.error:
            return f"{text} {BEHIND}"
        return f"{text} {AHEAD}" if -self.mean > CLEARLY * self.error else text


def difference(runs: Sequence[Result], others: Sequence[Result], percent: int) -> Difference:
    """One method's regret minus another's, paired by task and seed, at a percentage.

    The standard error takes the races as independent: it tells what other seeds would show on the
    same tasks and, roughly, on others like them.
    """
    known = {(other.task, other.seed): other.regret[place(percent)] for other in others}
    pairs = [run.regret[place(percent)] - known[run.task, run.seed] for run in runs]
    return Difference(statistics.mean(pairs), standard_error(pairs))


def judged(runs: Sequence[Result], rule: str) -> Sequence[Result]:
    """The same races, judged by another list of a result, such as `latest`; as they are where it is
    not known."""
    return [replace(run, regret=getattr(run, rule) or run.regret) for run in runs]


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


def report(results: Sequence[Result], methods: Sequence[str]) -> None:
    """Print the regrets of each family, budget and number of workers, and then the comparisons."""
    found = fields(results, methods)
    for field in found:
        print(f"\n{field.title}\n")
        for method, lacking in field.incomplete.items():
            print(f"{method} is left out: it lacks {lacking} of these races\n")
        if field.runs:
            title = "Regret of the recommendation ± standard error, by share of the budget"
            show(title, _regrets(field), None)
    comparisons = _comparisons(found)
    if comparisons:
        print("\nComparisons\n")
        title = "Regret of hpsearch minus that of a method ± standard error of paired differences"
        show(title, comparisons, None)
        cells = [str(row[f"{p}%"]) for row in comparisons for p in PERCENTS]
        known = [cell for cell in cells if "nan" not in cell]  # a single race has no error
        for word in (BEHIND, AHEAD):
            count = sum(cell.endswith(word) for cell in known)
            print(f"{word} by more than twice the standard error in {count} of {len(known)}")
    ranks = _ranks(found)
    if ranks:
        print()
        show("Mean rank over all families, which count alike", ranks, None)


def _regrets(field: Field) -> list[dict[str, Any]]:
    rows = []
    for method, runs in field.runs.items():
        row: dict[str, Any] = {"method": method}
        for percent in PERCENTS:
            values = [run.regret[place(percent)] for run in runs]
            row[f"{percent}%"] = f"{statistics.mean(values):.3f} ± {standard_error(values):.3f}"
        decisions = sum(run.decisions for run in runs)
        deciding_s = sum(run.deciding_s for run in runs)
        row["ms_a_decision"] = f"{1000 * deciding_s / max(decisions, 1):.1f}"
        row["trials"] = f"{statistics.mean(run.trials for run in runs):.0f}"
        rows.append(row)
    return rows


def _comparisons(found: Sequence[Field]) -> list[dict[str, Any]]:
    """A row for each yardstick in each field, by each rule: is hpsearch behind it?"""
    rows = []
    for field in found:
        head = {
            "family": field.family,
            "trials": str(field.terms.trials),
            "workers": str(field.terms.workers),
        }
        for method in (each for each in field.runs if each.startswith(OURS)):
            runs = field.runs[method]
            for against, ours, theirs in _rules(field, runs):
                row = {**head, "method": method, "against": against}
                for percent in PERCENTS:
                    row[f"{percent}%"] = str(difference(ours, theirs, percent))
                rows.append(row)
    return rows


def _rules(
    field: Field, ours: Sequence[Result]
) -> Iterable[tuple[str, Sequence[Result], Sequence[Result]]]:
    """The races of hpsearch and of each yardstick: judged by what that showed best, by what it
    showed last, by its own rule, and both by what they showed best."""
    for peer, name in YARDSTICKS.items():
        runs = field.runs.get(peer, [])
        if runs:
            yield name, ours, runs
        if any(run.latest for run in runs):
            yield f"{name}, by newest values", ours, judged(runs, "latest")
        if any(run.own for run in runs):
            yield f"{name}, by its own rule", ours, judged(runs, "own")
        if runs and any(run.shown for run in ours):
            yield f"{name}, both by values shown", judged(ours, "shown"), runs


def _ranks(found: Sequence[Field]) -> list[dict[str, Any]]:
    by_terms: defaultdict[Terms, list[Field]] = defaultdict(list)
    for field in found:
        if field.runs:
            by_terms[field.terms].append(field)
    rows: list[dict[str, Any]] = []
    for terms, of_families in by_terms.items():
        for method, ranks in ranks_over_families(of_families).items():
            row: dict[str, Any] = {"trials": str(terms.trials), "workers": str(terms.workers)}
            row |= {"families": str(len(of_families)), "method": method}
            row |= {f"{percent}%": f"{ranks[percent]:.2f}" for percent in PERCENTS}
            rows.append(row)
    return rows
