"""What pruning costs where starts are dear: pausing, stopping, and the same trials in full.

    python benchmarks/pauses.py [--tasks NAMES] [--starts 0,1,10,60] [--trials 20] [--workers 2]
                                [--seeds 3] [--json FILE] [--quick]

Recorded curves, a full training of which takes `FULL_S` seconds on average, on simulated workers:
an attempt begins to train after so many seconds, and a program either continues from its
checkpoint or keeps nothing and trains again from the beginning. Every study is limited by its
trials alone.

For each: the time that workers were held, as a share of that of the same number of trials in full
(`pruner: none`), the starts, the trials in full, and the normalised regret of what is recommended:
0 is the best of the table, 1 its median.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import tables
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.seeds import derived_seed
from hpsearch.search.ranking.selection import rank
from races.curves import Task, tasks_in
from races.ours import study_file
from races.race import Judge, Terms
from races.schedule import split
from simulation.running import Curves, simulate

FULL_S = 120.0
METHODS: dict[str, dict[str, Any]] = {
    "in full": {"pruner": "none"},
    "pausing": {"pruner": {"kind": "promotion", "pause": True}},
    "stopping": {"pruner": {"kind": "promotion", "pause": False}},
    "auto": {},
}


class Case(NamedTuple):
    """One study."""

    task: str
    method: str
    keeps: bool
    start_s: float
    seed: int
    trials: int
    workers: int


class Timed:
    """Curves whose mean full training takes `FULL_S`."""

    def __init__(self, curves: Curves, full_s: float) -> None:
        self._curves = curves
        self._factor = FULL_S / full_s

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The metrics at a resource."""
        return self._curves.measure(params, seed, resource)

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training up to a resource."""
        return self._factor * self._curves.seconds(params, resource)


def run(case: Case) -> dict[str, Any]:
    """Run one study, and say what it took."""
    (task,) = [each for each in tasks_in(None, None, "recorded") if each.name == case.task]
    seed = derived_seed("pauses", case.task, case.seed)
    terms = Terms(case.trials, case.workers)
    spec = study_file(task, terms, seed, METHODS[case.method], case.trials)
    curves = task.curves()
    history = simulate(
        spec,
        Timed(curves, task.full_seconds),
        case.workers,
        start_up_s=case.start_s,
        keeps=case.keeps,
    )
    return _figures(task, curves, history)


def _figures(task: Task, curves: Curves, history: History) -> dict[str, Any]:
    attempts = [attempt for trial in history.trials for attempt in trial.attempts]
    ranked = rank(history.trials, "minimize")
    regret = Judge(task, curves).of(ranked[0].trial.params if ranked else None)
    return {
        "held_s": sum(attempt.gpu_seconds for attempt in attempts),
        "wall_s": history.study.active_seconds,
        "starts": len(attempts),
        "in_full": sum(trial.state is State.COMPLETE for trial in history.trials),
        "regret": regret,
    }


def main() -> None:
    """Run the studies and print a table."""
    given = tables.arguments(
        __doc__,
        {"seeds": 1, "starts": [10.0], "tasks": ["scratch-sentences", "table-cancer"]},
        tasks=[""],
        starts=[0.0, 1.0, 10.0, 60.0],
        split=("all", "develop", "report"),
        trials=20,
        workers=2,
        seeds=3,
        jobs=os.cpu_count() or 1,
    )
    names = [name for name in given.tasks if name]
    known = split(tasks_in(None, None, "recorded"), given.split)
    names = names or [task.name for task in known]
    cases = [
        Case(task, method, keeps, float(start), seed, given.trials, given.workers)
        for task in names
        for start in given.starts
        for keeps in (True, False)
        for method in METHODS
        if not (method == "in full" and not keeps)
        for seed in range(given.seeds)
    ]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = dict(zip(cases, pool.map(run, cases), strict=True))
    rows = []
    groups: dict[tuple[Any, ...], list[tuple[Case, dict[str, Any]]]] = defaultdict(list)
    for case, figures in found.items():
        for task in (case.task, "all"):
            groups[task, case.start_s, case.keeps, case.method].append((case, figures))
    for (task, start_s, keeps, method), members in groups.items():
        shares, walls = [], []
        for case, figures in members:
            full = found[case._replace(method="in full", keeps=True)]
            shares.append(figures["held_s"] / full["held_s"])
            walls.append(figures["wall_s"] / full["wall_s"])
        rows.append(
            {
                "task": task,
                "start_s": start_s,
                "keeps": keeps,
                "method": method,
                "held": statistics.mean(shares),
                "wall": statistics.mean(walls),
                "worst": max(shares),
                "starts": statistics.mean(f["starts"] for _, f in members),
                "in_full": statistics.mean(f["in_full"] for _, f in members),
                "regret": statistics.mean(f["regret"] for _, f in members),
            }
        )
    tables.show("what pruning costs", rows, given.json)


if __name__ == "__main__":
    main()
