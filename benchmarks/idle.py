"""Do slots wait? The share of the slots' time that no attempt uses, up to the end of a study.

    python benchmarks/idle.py [--workers 2,8,32] [--seeds 3] [--budgets "trials;gpu_hours"]
                              [--quick] [--json FILE]

Studies on computed curves with the real brain, driver and store, on a virtual clock. The slowest
configurations take three times as long as the fastest ones, and every run varies by a tenth. Each
budget is about as much as 5 full trainings a worker: a number of trials; a number of full trainings
(without a pruner); GPU-hours; wall-clock time; and GPU-hours of which a part confirms the winners.

`unused` is the share of the slots' time, from the first attempt to the study's end, without an
attempt. `idle` is the share of the time for which the study holds its slots: on a real cluster,
all slots but one that have had nothing to do for 30 s are given back. These studies last 7 to 17
minutes, so that with many slots up to half of `idle` is those 30 s. `over` is the budget's
overrun, as a share of it, and `took` the time, as a share of what perfect packing would take.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported

import numpy as np
import yaml

from hpsearch.domain.history import History
from hpsearch.domain.records import Attempt
from hpsearch.simulation.running import simulate
from hpsearch.store.reading.idle import idle_seconds
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from tables import show

EPOCHS = 9
FASTEST_S, SLOWEST_S = 10.0, 30.0
"""Seconds that an epoch takes."""
MEAN_FULL_S = EPOCHS * (FASTEST_S + SLOWEST_S) / 2
EACH = 5
"""The budget in full trainings a worker."""
BUDGETS = ("trials", "full trainings", "gpu_hours", "wall_clock", "confirmed")


class Uneven:
    """Curves that fall towards the distance from a point; wide models train slowly."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The loss at a resource, with noise that is drawn from the seed."""
        noise = 0.02 * float(np.random.default_rng(seed).normal())
        distance = (params["x"] - 0.3) ** 2 + (params["width"] - 0.6) ** 2
        return {"loss": distance + 0.3 * (1 - resource / EPOCHS) + noise}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds up to a resource: an epoch's grow with the width, and vary by a tenth."""
        varied = 1 + 0.1 * np.sin(1000 * params["x"] + 7 * resource)
        each_s = FASTEST_S + (SLOWEST_S - FASTEST_S) * params["width"]
        return float(resource * each_s * (varied if resource == EPOCHS else 1.0))


def budget_of(kind: str, workers: int) -> dict[str, Any]:
    """The limit of a study on so many workers, and its `search`."""
    trainings = EACH * workers
    match kind:
        case "trials":
            return {"budget": {"trials": trainings}}
        case "full trainings":
            return {"budget": {"trials": trainings}, "search": {"pruner": "none"}}
        case "wall_clock":
            return {"budget": {"wall_clock": EACH * MEAN_FULL_S}}
    hours = {"budget": {"gpu_hours": trainings * MEAN_FULL_S / 3600}}
    confirm = {"search": {"confirm": {"top": 3, "seeds": 2}}}
    return hours if kind == "gpu_hours" else hours | confirm


def study_of(kind: str, workers: int, seed: int) -> StudySpec:
    """A study with one kind of budget."""
    parts = budget_of(kind, workers)
    one = {"type": "float", "low": 0.0, "high": 1.0}
    text = {
        "study": "idle",
        "seed": seed,
        "task": {"kind": "benchmark:train"},
        "space": {"x": one, "width": one},
        "objective": {"metric": "loss", "direction": "minimize"},
        **parts,
        "budget": {**parts["budget"], "per_trial": {"epochs": EPOCHS, "report_every": 1}},
        "resources": {"workers": workers, "gpu": 1},
    }
    return parse(yaml.safe_dump(text), base=Path())


def attempts_of(history: History) -> list[Attempt]:
    """All attempts of a study."""
    return [attempt for trial in history.trials for attempt in trial.attempts]


def shares(history: History, workers: int) -> tuple[float, float]:
    """The shares of the slots' time that are not used, and for which slots are held for nothing."""
    held = [(each.worker, each.started, each.ended or 0.0) for each in attempts_of(history)]
    busy_s = sum(ended - started for _, started, ended in held)
    end = max(ended for _, _, ended in held)
    idle_s = sum(idle_seconds(held, end).values())
    return 1 - busy_s / (workers * end), idle_s / (idle_s + busy_s)


def overrun(spec: StudySpec, history: History) -> float:
    """The share by which a study has exceeded its limit on time."""
    attempts = attempts_of(history)
    used, most = 0.0, None
    if spec.budget.gpu_hours is not None:
        most = spec.budget.gpu_hours * 3600
        used = sum(attempt.gpu_seconds for attempt in attempts)
    elif spec.budget.wall_clock_s is not None:
        most = spec.budget.wall_clock_s
        used = max(attempt.ended or 0.0 for attempt in attempts)
    return 0.0 if most is None else max(0.0, used / most - 1)


def row(kind: str, workers: int, seeds: int) -> dict[str, Any]:
    """A line of the table: means over seeds, and the worst overrun."""
    unused, idle, over, took = [], [], [], []
    for seed in range(seeds):
        spec = study_of(kind, workers, seed)
        history = simulate(spec, Uneven(), workers)
        without_work, held = shares(history, workers)
        unused.append(without_work)
        idle.append(held)
        over.append(overrun(spec, history))
        took.append(max(each.ended or 0.0 for each in attempts_of(history)))
    return {
        "budget": f"{kind}, {workers} workers",
        "unused": fmean(unused),
        "idle": fmean(idle),
        "most_idle": max(idle),
        "over": max(over),
        "took": fmean(took) / (EACH * MEAN_FULL_S),
    }


def main() -> None:
    """Run the studies and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="2,8,32", help="numbers of slots")
    parser.add_argument("--budgets", default=";".join(BUDGETS), help=f"some of {BUDGETS}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="2 and 8 workers, one seed")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the rows to this file"
    )
    args = parser.parse_args()
    workers = [int(word) for word in args.workers.split(",")]
    kinds = args.budgets.split(";")
    unknown = set(kinds) - set(BUDGETS)
    if unknown:
        parser.error(f"no such budget: {', '.join(sorted(unknown))}; known are {BUDGETS}")
    if args.quick:
        workers, args.seeds = workers[:2], 1
    warnings.simplefilter("ignore")  # Optuna's experimental features do not concern the reader
    rows = [row(kind, count, args.seeds) for count in workers for kind in kinds]
    show(f"Idle slots, {args.seeds} seeds", rows, args.json)


if __name__ == "__main__":
    main()
