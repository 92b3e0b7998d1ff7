"""The tables of a set of races: how each method did, and where hpsearch misses its targets."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from races.race import Result, Terms
from races.scores import (
    OURS,
    PERCENTS,
    RANDOM,
    Difference,
    Field,
    best_peer,
    by_latest,
    difference,
    fields,
    lost_tasks,
    mean_curve,
    mean_ranks,
    place,
    ranks_over_families,
    reached,
    standard_error,
)
from tables import show

YARDSTICKS = {RANDOM: "random in full", "optuna-tpe": "TPE in full", "syne-asha": "ASHA"}
"""The methods that hpsearch must nowhere be behind."""

BEHIND = "BEHIND"
"""Marks a difference of more than twice its standard error, to the disadvantage of hpsearch."""


def report(results: Sequence[Result], methods: Sequence[str]) -> None:
    """Print the tables of each family, budget and number of workers, and then the targets."""
    found = fields(results, methods)
    for field in found:
        _print_field(field)
    if any(method.startswith(OURS) for field in found for method in field.runs):
        _print_targets(found)


def _print_field(field: Field) -> None:
    print(f"\n{field.title}\n")
    for method, lacking in field.incomplete.items():
        print(f"{method} is left out: it lacks {lacking} of these races\n")
    if not field.runs:
        return
    title = "Regret of the recommendation ± standard error, by share of the budget"
    show(title, _regrets(field), None)
    print()
    ranks = mean_ranks(field.results, list(field.runs))
    rows = [{"method": m, **{f"{p}%": f"{of[p]:.2f}" for p in PERCENTS}} for m, of in ranks.items()]
    show("Mean rank of the recommendation", rows, None)
    print()
    show("Regret of the best value seen", _seen(field), None)
    latest = _latest(field)
    if latest:
        print()
        show("Regret of peers that recommend the best newest value", latest, None)


def _regrets(field: Field) -> list[dict[str, object]]:
    best = best_peer(field.runs)
    rows = []
    for method, runs in field.runs.items():
        row: dict[str, object] = {"method": method}
        for percent in PERCENTS:
            row[f"{percent}%"] = _with_error([run.regret[place(percent)] for run in runs])
        row["%_to_best_peer"] = None if best is None else reached(mean_curve(runs), best[1])
        row["tasks_lost_to_random"] = _lost(field, method)
        decisions = sum(run.decisions for run in runs)
        deciding_s = sum(run.deciding_s for run in runs)
        row["ms_a_decision"] = f"{1000 * deciding_s / max(decisions, 1):.1f}"
        row["trials"] = f"{statistics.mean(run.trials for run in runs):.0f}"
        rows.append(row)
    return rows


def _lost(field: Field, method: str) -> str | None:
    """In how many tasks a method ends worse than random search in full."""
    if RANDOM not in field.runs or method == RANDOM:
        return None
    lost = lost_tasks(field.runs[method], field.runs[RANDOM])
    return f"{lost.worse} of {lost.tasks}, {lost.clearly} clearly"


def _seen(field: Field) -> list[dict[str, object]]:
    rows = []
    for method, runs in field.runs.items():
        row: dict[str, object] = {"method": method}
        for percent in PERCENTS:
            row[f"{percent}%"] = _with_error([run.seen[place(percent)] for run in runs])
        rows.append(row)
    return rows


def _latest(field: Field) -> list[dict[str, object]]:
    rows = []
    for method, runs in field.runs.items():
        if all(run.latest for run in runs):
            row: dict[str, object] = {"method": method}
            for percent in PERCENTS:
                row[f"{percent}%"] = _with_error([run.latest[place(percent)] for run in runs])
            rows.append(row)
    return rows


def _with_error(values: Sequence[float]) -> str:
    """The mean and its standard error over races."""
    return f"{statistics.mean(values):.3f} ± {standard_error(values):.3f}"


# --------------------------------------------------------------------------------- Targets


def _print_targets(found: Sequence[Field]) -> None:
    print("\nTargets")
    comparisons = _comparisons(found)
    if comparisons:
        print()
        title = (
            "Regret of hpsearch minus that of a method ± standard error of the paired differences"
        )
        show(title, comparisons, None)
        cells = [str(row[f"{p}%"]) for row in comparisons for p in PERCENTS]
        known = [cell for cell in cells if "nan" not in cell]  # a single race has no error
        behind = sum(cell.endswith(BEHIND) for cell in known)
        print(f"{BEHIND} by more than twice the standard error in {behind} of {len(known)}")
    print()
    show("Mean rank over all families, which count alike", _ranks(found), None)
    shares = _shares(found)
    if shares:
        print()
        show("Share of the budget at which the best peer's final regret is reached", shares, None)


def _heading(field: Field) -> dict[str, object]:
    return {
        "family": field.family,
        "trials": str(field.terms.trials),
        "workers": str(field.terms.workers),
    }


def _ours(field: Field) -> list[str]:
    return [method for method in field.runs if method.startswith(OURS)]


def _comparisons(found: Sequence[Field]) -> list[dict[str, object]]:
    """A row for each yardstick in each field: is hpsearch behind it?"""
    rows = []
    for field in found:
        for method in _ours(field):
            for peer, name in YARDSTICKS.items():
                if peer not in field.runs:
                    continue
                theirs = field.runs[peer]
                rules = {name: theirs}
                if all(run.latest for run in theirs):
                    rules[f"{name}, by newest values"] = by_latest(theirs)
                for rule, runs in rules.items():
                    row = {**_heading(field), "method": method, "against": rule}
                    for percent in PERCENTS:
                        pairs = difference(field.runs[method], runs, percent)
                        row[f"{percent}%"] = _judged(pairs)
                    rows.append(row)
    return rows


def _judged(pairs: Difference) -> str:
    text = f"{pairs.mean:+.3f} ± {pairs.error:.3f}"
    return f"{text} {BEHIND}" if pairs.is_clear else text


def _ranks(found: Sequence[Field]) -> list[dict[str, object]]:
    by_terms: defaultdict[Terms, list[Field]] = defaultdict(list)
    for field in found:
        if field.runs:
            by_terms[field.terms].append(field)
    rows: list[dict[str, object]] = []
    for terms, of_families in by_terms.items():
        for method, ranks in ranks_over_families(of_families).items():
            row: dict[str, object] = {"trials": str(terms.trials), "workers": str(terms.workers)}
            row |= {"families": str(len(of_families)), "method": method}
            row |= {f"{percent}%": f"{ranks[percent]:.2f}" for percent in PERCENTS}
            rows.append(row)
    return rows


def _shares(found: Sequence[Field]) -> list[dict[str, object]]:
    rows = []
    for field in found:
        best = best_peer(field.runs)
        if best is None:
            continue
        for method in _ours(field):
            share = reached(mean_curve(field.runs[method]), best[1])
            row = {**_heading(field), "method": method, "best_peer": best[0]}
            row["its_regret"] = f"{best[1]:.3f}"
            row["reached_at"] = "never" if share is None else f"{share:.0f}%"
            rows.append(row)
    return rows
