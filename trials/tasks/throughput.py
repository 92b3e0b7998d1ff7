"""Trials that train one after the other, to measure how fast: a program of its own.

It reads a pickled (`task`, `base`, `Setup`) of a built-in task from its input, and prints the
samples that it has trained so far, a few times a second, until it is ended.
"""

import itertools
import pickle
import sys
import time
from dataclasses import replace

from trials import tasks
from trials.checkpoints.disk import drafts
from trials.loop.training import TrainingRun

EVERY_S = 0.2


def main() -> None:
    """Train until this process is ended."""
    # Who measures reads numbers from here; what a library prints goes elsewhere.
    numbers, sys.stdout = sys.stdout, sys.stderr
    part, base, setup = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    task = tasks.load(part, base)
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
