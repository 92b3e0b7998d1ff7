"""Trials that train one after the other, to measure how fast: a program of its own.

It reads JSON of a built-in task from its input: the `task` with its folder `base`, and of each
trial `params`, `seed`, `unit`, `total` and `levels` of its budget, `device` and `goal`. It prints
the samples that it has trained so far, a few times a second, until it is ended.
"""

import itertools
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from trials import tasks
from trials.checkpoints.disk import drafts
from trials.contract import Budget, Goal, Setup, Unit
from trials.loop.training import TrainingRun

EVERY_S = 0.2


def main() -> None:
    """Train until this process is ended."""
    # Who measures reads numbers from here; what a library prints goes elsewhere.
    numbers, sys.stdout = sys.stdout, sys.stderr
    given = json.load(sys.stdin)
    base, levels = Path(given["base"]), tuple(given["levels"])
    setup = Setup(
        params=given["params"],
        seed=given["seed"],
        budget=Budget(Unit(given["unit"]), given["total"], levels),
        folder=base,  # each trial gets one of its own
        device=given["device"],
        goal=Goal(*given["goal"]),
    )
    task = tasks.load(given["task"], base)
    data = task.prepare(setup.params)
    before, told = 0, 0.0
    for seed in itertools.count(setup.seed):
        with drafts.temporary("hpsearch-check-") as folder:
            run = task.start(replace(setup, seed=seed, folder=folder), data)
            assert isinstance(run, TrainingRun), "the task is built in"
            for _ in run:
                if time.monotonic() - told > EVERY_S:
                    told = time.monotonic()
                    print(before + run.position.samples, file=numbers, flush=True)
            before += run.position.samples
            run.close()


if __name__ == "__main__":
    main()
