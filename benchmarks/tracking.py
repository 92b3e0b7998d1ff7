"""What trackers cost a driver: ticks of a simulated study with and without senders beside it.

    python benchmarks/tracking.py [--trials 300] [--repeats 3] [--quick] [--json FILE]

A study whose trials cost nothing is driven as fast as its driver can, in an SQLite file. A tick
decides and commits; the median and the 99th percentile of its time are shown. The contenders take
turns: no tracker, one that works (a stand-in that does nothing with what it is sent), and one that
hangs. Their processes and their reading of the database are the real ones.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver, watched_by
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.tracking.processes import Senders
from hpsearch.simulation.running import Straight
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.reading import parse
from hpsearch.study_file.trackers import NamedTracker
from tables import show

STUDY = """
study: ticks
task: {kind: "nothing:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: TRIALS, per_trial: {epochs: 9}}
search: {sampler: random}
"""
STAND_IN = """
class Settings:
    def __init__(self, **named): pass
class Run:
    summary = {}
    def define_metric(self, *a, **k): pass
    def log(self, *a, **k): pass
    def finish(self, *a, **k): pass
"""
CONTENDERS = {
    "no tracker": None,
    "one that works": STAND_IN + "def init(**named): return Run()\n",
    "one that hangs": STAND_IN + "import time\ndef init(**named): time.sleep(1000)\n",
}
"""By name, the library that is found in the place of wandb."""


class Curves:
    """Losses that fall towards the parameter."""

    def measure(self, params: dict[str, Any], seed: int, resource: float) -> dict[str, float]:
        """The metrics at a resource level."""
        return {"loss": params["x"] + 1 / (1 + resource)}

    def seconds(self, params: dict[str, Any], resource: float) -> float:
        """The time of a trial, on the virtual clock."""
        return resource


def ticks(trials: int, library: str | None) -> list[float]:
    """The seconds of each tick of a study."""
    with (
        tempfile.TemporaryDirectory() as name,
        closing(Store.open(f"sqlite:///{name}/db")) as store,
    ):
        folder = Path(name)
        spec = parse(STUDY.replace("TRIALS", str(trials)), base=folder)
        history = create_study(store, spec, "")
        trackers: Sequence[NamedTracker] = ()
        if library is not None:
            (folder / "wandb.py").write_text(library)
            os.environ["PYTHONPATH"] = name
            trackers = [NamedTracker.model_validate({"wandb": {}})]
        senders = Senders(store, spec.study, str(folder / "home"), trackers, end_s=5.0)
        moments: list[float] = []

        def watch(study: object, changes: object, now: float) -> None:
            moments.append(time.perf_counter())

        executor = Straight(Curves(), trial_budget(spec), 2)
        lease = store.acquire(history.study.id, "driver", 1e9)
        study = build_study(history, spec)
        watched = watched_by(senders.watch, watch)
        driver = Driver(study, executor, store, lease, watched, executor.clock, poll_s=math.inf)
        driver.run()
        store.release(lease)
        senders.end()
    return [after - before for before, after in pairwise(moments)]


def main() -> None:
    """Measure, and print a row for each contender."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="fewer trials, one repeat")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    trials = 60 if options.quick else options.trials
    repeats = 1 if options.quick else options.repeats
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(repeats):
        for name, library in CONTENDERS.items():
            times[name] += ticks(trials, library)
    rows = []
    for name, of_contender in times.items():
        percentiles = statistics.quantiles(of_contender, n=100)
        rows.append(
            {
                "tracker": name,
                "ticks": len(of_contender),
                "median_ms": statistics.median(of_contender) * 1000,
                "p99_ms": percentiles[-1] * 1000,
                "ticks_per_s": len(of_contender) / sum(of_contender),
            }
        )
    show(f"Ticks of a driver ({trials} trials, {repeats} times)", rows, options.json)


if __name__ == "__main__":
    sys.exit(main())
