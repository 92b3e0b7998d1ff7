"""What a set of races shows: mean regrets, ranks, and when a method catches the best peer."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from race import MARKS, Result
from tables import show

PERCENTS = (5, 10, 25, 50, 100)
OURS = "hpsearch"


def report(results: Sequence[Result], methods: Sequence[str]) -> None:
    """Print three tables per family: regrets, ranks, and regrets of the best value seen."""
    for family in dict.fromkeys(result.family for result in results):
        runs = [result for result in results if result.family == family]
        tasks, seeds = {run.task for run in runs}, {run.seed for run in runs}
        print(f"\n{family}: {len(tasks)} tasks, {len(seeds)} seeds, {runs[0].workers} workers\n")
        by_method = {method: [run for run in runs if run.method == method] for method in methods}
        show(
            "Regret of the recommendation ± standard error, by share of the budget",
            _regrets(by_method),
            None,
        )
        print()
        show("Mean rank of the recommendation", _ranks(runs, methods), None)
        print()
        show("Regret of the best value seen", _seen(by_method), None)


def _regrets(by_method: dict[str, list[Result]]) -> list[dict[str, object]]:
    mean = {method: mean_curve(runs) for method, runs in by_method.items()}
    target = min(
        (curve[-1] for method, curve in mean.items() if not method.startswith(OURS)),
        default=math.nan,
    )
    return [
        {
            "method": method,
            **{f"{p}%": _with_error([run.regret[_place(p)] for run in runs]) for p in PERCENTS},
            "%_to_best_peer": reached(mean[method], target),
            "ms_a_decision": 1000
            * sum(run.deciding_s for run in runs)
            / sum(run.decisions for run in runs),
            "trials": statistics.mean(run.trials for run in runs),
        }
        for method, runs in by_method.items()
    ]


def _ranks(runs: Sequence[Result], methods: Sequence[str]) -> list[dict[str, object]]:
    ranks = mean_ranks(runs, methods)
    return [{"method": m, **{f"{p}%": f"{ranks[m][p]:.2f}" for p in PERCENTS}} for m in methods]


def _seen(by_method: dict[str, list[Result]]) -> list[dict[str, object]]:
    return [
        {
            "method": method,
            **{f"{p}%": _with_error([run.seen[_place(p)] for run in runs]) for p in PERCENTS},
        }
        for method, runs in by_method.items()
    ]


def _with_error(values: Sequence[float]) -> str:
    """The mean and its standard error over races."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{statistics.mean(values):.3f} ± {error:.3f}"


def _place(percent: int) -> int:
    return percent * MARKS // 100 - 1


def mean_curve(runs: Sequence[Result]) -> list[float]:
    """The mean regret at each mark."""
    return [statistics.mean(run.regret[i] for run in runs) for i in range(MARKS)]


def reached(curve: Sequence[float], target: float) -> float | None:
    """The percentage of the budget at which a mean regret reaches a target; None if never."""
    return next((100.0 * (i + 1) / MARKS for i, value in enumerate(curve) if value <= target), None)


def mean_ranks(results: Sequence[Result], methods: Sequence[str]) -> dict[str, dict[int, float]]:
    """The mean rank of each method, from 1, at each percentage; equal regrets share their ranks."""
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
