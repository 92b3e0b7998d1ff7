"""What a set of races says: mean regrets with standard errors, ranks, and what it takes to catch the best peer."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from race import MARKS, Result
from tables import show

PERCENTS = (5, 10, 25, 50, 100)


def report(results: Sequence[Result], methods: Sequence[str]) -> None:
    """Print a table for each family."""
    for family in dict.fromkeys(result.family for result in results):
        of_family = [result for result in results if result.family == family]
        tasks, seeds = {r.task for r in of_family}, {r.seed for r in of_family}
        title = f"\n{family}: {len(tasks)} tasks, {len(seeds)} seeds, {of_family[0].workers} workers"
        show(f"{title}; regret of what is handed out (± standard error)", _rows(of_family, methods), None)


def _rows(results: Sequence[Result], methods: Sequence[str]) -> list[dict[str, object]]:
    by_method = {method: [r for r in results if r.method == method] for method in methods}
    ranks = mean_ranks(results, methods)
    peers = [method for method in methods if not method.startswith("hpsearch")]
    mean = {method: mean_curve(runs) for method, runs in by_method.items()}
    target = min((mean[peer][-1] for peer in peers), default=math.nan)
    rows: list[dict[str, object]] = []
    for method, runs in by_method.items():
        row: dict[str, object] = {"method": method}
        for percent in PERCENTS:
            values = [r.regret[_place(percent)] for r in runs]
            row[f"at_{percent}%"] = f"{statistics.mean(values):.3f}±{_standard_error(values):.3f}"
        row |= {f"rank_{percent}": f"{ranks[method][percent]:.2f}" for percent in PERCENTS}
        row |= {
            f"seen_{percent}": f"{statistics.mean(r.seen[_place(percent)] for r in runs):.3f}" for percent in PERCENTS
        }
        row["%_to_best_peer"] = reached(mean[method], target)
        row["ms_a_decision"] = 1000 * sum(r.deciding_s for r in runs) / sum(r.decisions for r in runs)
        row["trials"] = statistics.mean(r.trials for r in runs)
        rows.append(row)
    return rows


def _place(percent: int) -> int:
    return percent * MARKS // 100 - 1


def _standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def mean_curve(runs: Sequence[Result]) -> list[float]:
    """The mean regret at each mark."""
    return [statistics.mean(run.regret[i] for run in runs) for i in range(MARKS)]


def reached(curve: Sequence[float], target: float) -> float | None:
    """The percentage of the budget after which a mean regret is at a target or below; None if it never is."""
    return next((100.0 * (i + 1) / MARKS for i, value in enumerate(curve) if value <= target), None)


def mean_ranks(results: Sequence[Result], methods: Sequence[str]) -> dict[str, dict[int, float]]:
    """The mean place of each method among all, from 1, at each percentage; equal regrets share their places."""
    races: defaultdict[tuple[str, int], list[Result]] = defaultdict(list)
    for result in results:
        races[result.task, result.seed].append(result)
    ranks: dict[str, dict[int, list[float]]] = {m: {p: [] for p in PERCENTS} for m in methods}
    for runs in races.values():
        for percent in PERCENTS:
            values = {run.method: run.regret[_place(percent)] for run in runs}
            for method, value in values.items():
                better = sum(other < value for other in values.values())
                equal = sum(other == value for other in values.values())
                ranks[method][percent].append(better + (equal + 1) / 2)
    return {m: {p: statistics.mean(places) for p, places in of.items()} for m, of in ranks.items()}
