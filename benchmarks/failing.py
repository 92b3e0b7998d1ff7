"""Do fewer trials fail as a study goes on? Compares the first half of studies with the last half.

    python benchmarks/failing.py --data DIR [--seeds 5] [--trials 100] [--workers 8]
                                 [--samplers "a;b"]

DIR contains TaskSet's tables (*.npz), of which up to a quarter of the settings diverge. One
additional line is for a bowl in three dimensions of which half diverges. `tpe, untold` is Optuna's
sampler without hpsearch's additions: it does not learn of failed trials.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported

import yaml

from hpsearch.domain.lifecycle import State
from hpsearch.search.samplers import view
from hpsearch.simulation.running import Curves, simulate
from hpsearch.study_file.reading import parse
from races.curves import METRIC, TaskSet
from tables import show
from trials.contract import Diverged

UNTOLD = "tpe, untold"
SAMPLERS = ["curve_gp", "tpe", UNTOLD, "random"]
BOWL = {name: {"type": "float", "low": 0.0, "high": 1.0} for name in "xyz"}
"""The bowl's space."""
STEPS = 40
"""The number of steps of the bowl's curves."""


class Bowl:
    """Curves that fall towards the distance from a point; half of the space diverges."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        if params["x"] > 0.5:
            raise Diverged("the loss is not finite")
        distance = sum(
            (params[name] - best) ** 2 for name, best in zip("xyz", (0.3, 0.6, 0.2), strict=True)
        )
        return {METRIC: distance + 1 / (1 + resource)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Every step takes one second."""
        return resource


@contextmanager
def telling(sampler: str) -> Iterator[None]:
    """Within this context, samplers learn of failed trials, or do not for `UNTOLD`."""
    failed = view.FAILED
    if sampler == UNTOLD:
        view.FAILED = "nothing"
    try:
        yield
    finally:
        view.FAILED = failed


def failing(
    sampler: str, space: Mapping[str, Any], total: int, curves: Curves, seed: int, args: Any
) -> list[bool]:
    """Which trials of a study failed, in order."""
    text = {
        "study": "failing",
        "seed": seed,
        "task": {"kind": "benchmark:train"},
        "space": dict(space),
        "objective": {"metric": METRIC, "direction": "minimize"},
        "budget": {"trials": args.trials, "per_trial": {"steps": total, "report_every": 1}},
        "search": {"sampler": sampler.partition(",")[0]},
    }
    with telling(sampler):
        history = simulate(parse(yaml.safe_dump(text), base=Path()), curves, args.workers)
    return [trial.state is State.FAILED for trial in history.trials]


def row(
    name: str, space: Mapping[str, Any], total: int, curves: Callable[[], Curves], args: Any
) -> dict[str, str]:
    """A line of the table: the share of failing trials in both halves, by sampler."""
    cells = {"task": name}
    for sampler in args.samplers:
        studies = [
            failing(sampler, space, total, curves(), seed, args) for seed in range(args.seeds)
        ]
        half = args.trials // 2
        first, last = (
            fmean(fmean(study[part]) for study in studies)
            for part in (slice(half), slice(half, None))
        )
        cells[sampler] = f"{first:.0%} to {last:.0%}"
    return cells


def main() -> None:
    """Run the studies and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="the folder with TaskSet's tables"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument(
        "--samplers",
        type=lambda text: text.split(";"),
        default=SAMPLERS,
        help='for example "tpe;random"',
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the rows to this file"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # warnings of peers do not concern the reader
    folder = args.data / "taskset" if (args.data / "taskset").is_dir() else args.data
    rows = [row("a bowl, half of it", BOWL, STEPS, Bowl, args)]
    for path in sorted(folder.glob("*.npz")):
        task = TaskSet(folder, path.stem)
        rows.append(row(path.stem, task.space, task.total, task.curves, args))
    setup = f"{args.trials} trials, {args.seeds} seeds, {args.workers} workers"
    show(f"Failing trials, from the first half to the last half of {setup}", rows, args.json)


if __name__ == "__main__":
    main()
