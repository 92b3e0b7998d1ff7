"""How many trials share a GPU: those that train the most samples a second together, measured.

Trials of the heaviest configuration train side by side on one GPU: one, then two, four, and so on,
while twice as many bring `GROWTH` more samples a second, and fit into memory.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Self

from hpsearch.domain.numbers import count, number
from hpsearch.errors import UserError
from hpsearch.running.rehearsal.first_step import heaviest
from hpsearch.running.study_run.workers import goal_of
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import Resources, StudySpec
from hpsearch.study_file.types import SHARE
from trials.data import cache
from trials.data.cache import CacheEntry
from trials.devices import gpu as gpus

GROWTH = 0.06
"""The samples a second that twice as many trials must bring, as a share of those before."""
MOST = 16
WARM_UP_S, MEASURED_S = 3.0, 4.0
START_S = 180.0
"""The longest wait for the first step of a trial."""

Note = Callable[[str], None]


def resolved(spec: StudySpec, resources: Resources, address: str | None, note: Note) -> Resources:
    """Resources with the measured share in place of `gpu: share`. Trials of one task are measured
    once on a machine.

    Args:
        address: Of a Ray cluster, whose GPUs are not this machine's; None for none.

    Raises:
        UserError: The GPU is not this machine's, torch cannot use it, or no trial trains on it.
    """
    if resources.gpu != SHARE:
        return resources
    if address is not None:
        raise UserError(
            "resources.gpu: share is measured on a GPU of this machine, and the study runs on "
            f"the cluster {address}",
            "write the share that hpsearch check finds on one of its nodes, such as gpu: 0.25",
        )
    if not gpus.can_be_used():
        if gpus.installed():
            fault = gpus.fault("cuda:0")
            raise UserError(f"this machine has a GPU that cannot be used: {fault}", gpus.ON_CPUS)
        return resources.model_copy(update={"gpu": 0.0})
    import torch  # imported here: it takes long

    cores = (os.cpu_count() or 1) / torch.cuda.device_count() / resources.cpu
    most = min(MOST, max(1, int(cores)))

    def measured() -> CacheEntry:
        note("measuring how many trials share a GPU ...")
        with Trials(spec, "cuda:0") as trials:
            chosen = choose(trials.samples_per_second, most, note)
        return CacheEntry({}, {}, {"trials": chosen})

    gpu = torch.cuda.get_device_name(0)
    like = cache.digest_of(spec.task, spec.base, heaviest(spec), gpu, most, torch.__version__)
    found = cache.cached(f"share-{like}", measured).facts["trials"]
    note(f"{count(found, 'trial')} a GPU: gpu {number(1 / found)}")
    return resources.model_copy(update={"gpu": 1 / found})


def charged_by(resources: Resources, spec: StudySpec) -> StudySpec:
    """The study with the GPU share of `resources`: attempts of a dead driver are charged by it."""
    own = spec.resources.model_copy(update={"gpu": resources.gpu})
    return spec.model_copy(update={"resources": own})


def choose(measure: Callable[[int], float | None], most: int, note: Note) -> int:
    """The number of trials at once that pays.

    Args:
        measure: Samples a second of so many trials together; None where one fails.
        most: Trials at once.

    Raises:
        UserError: Not even one trial trains.
    """

    @functools.cache
    def measured(trials: int) -> float:
        found = measure(trials)
        told = "a trial fails, as where memory is short"
        if found is not None:
            told = f"{found:,.0f} samples a second"
        note(f"{count(trials, 'trial')} at once: {told}")
        return found or 0.0

    best = 1
    if not measured(best):
        raise UserError("no trial trains on the GPU", "see why with gpu: 1 in the study file")
    while measured(min(2 * best, most)) > measured(best) * (1 + GROWTH):
        best = min(2 * best, most)
    # The best number may be between two doublings.
    step = best // 2
    while step >= max(best // 8, 1):
        above = min(best + step, most)
        if measured(best - step) >= measured(best):
            best -= step
        elif measured(above) > measured(best) * (1 + GROWTH / 2):
            best = above
        step //= 2
    return best


class _Trainer:
    """A process that trains, and the samples that it has trained."""

    def __init__(self, given: bytes) -> None:
        self.samples = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trials.tasks.throughput"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self.process.stdin as stdin:
            stdin.write(given)
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def _follow(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as numbers:
            for line in numbers:
                self.samples = int(line)

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()


class Trials:
    """Processes that train trials of a study's heaviest configuration; a context manager."""

    def __init__(self, spec: StudySpec, device: str) -> None:
        goal, budget = goal_of(spec), trial_budget(spec)
        given = {
            "task": spec.task,
            "base": str(spec.base.absolute()),
            "params": heaviest(spec),
            "seed": spec.seed,
            "unit": budget.unit.value,
            "total": budget.total,
            "levels": budget.report_at,
            "device": device,
            "goal": (goal.metric, goal.maximize),
        }
        self._input = json.dumps(given).encode()
        self._trainers: list[_Trainer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while self._trainers:
            self._trainers.pop().end()

    def samples_per_second(self, trials: int) -> float | None:
        """The samples a second of so many trials together; None if one has failed."""
        for trainer in list(self._trainers):
            if trainer.has_ended() or len(self._trainers) > trials:
                self._trainers.remove(trainer)
                trainer.end()
        while len(self._trainers) < trials:
            self._trainers.append(_Trainer(self._input))
        deadline = time.monotonic() + START_S
        while not all(trainer.samples for trainer in self._trainers):
            if self._has_failed() or time.monotonic() > deadline:
                return None
            time.sleep(0.1)
        time.sleep(WARM_UP_S)
        before, began = self._samples(), time.monotonic()
        time.sleep(MEASURED_S)
        trained, passed = self._samples() - before, time.monotonic() - began
        return None if self._has_failed() else trained / passed

    def _samples(self) -> int:
        return sum(trainer.samples for trainer in self._trainers)

    def _has_failed(self) -> bool:
        return any(trainer.has_ended() for trainer in self._trainers)
