"""What each technique of the training loop gains: the bare loop with all, and without one.

    python benchmarks/techniques.py [--data DIR] [--model PATH] [--samples 256] [--repeats 3]
                                    [--quick] [--json FILE]

One process trains an epoch of each variant in turn. Processor time is measured, because other
programs on the machine affect it less than elapsed time; on a GPU it is elapsed time. hpsearch's
own loop is measured beside the bare one: the difference is the cost of what it adds (assembling
batches, seeding, measuring itself).
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from loop import device, make_job
from loops.contenders import Floor, Hpsearch, Job, Outcome
from tables import arguments, show
from trials.data import residence

WARM_UP = 2
"""Steps before the measurement starts."""


def variants(job: Job) -> dict[str, Any]:
    """The variants to measure, by name."""
    return {
        "all, bare": Floor(job),
        "all, our loop": Hpsearch(job),
        "without bucketing": Floor(job, bucketing=False),
        "without dynamic padding": Floor(job, bucketing=False, pad_to=job.max_length),
        "without the fused optimizer": Floor(job, fused=False),
        "without mixed precision: our loop in float32": Hpsearch(job, precision="fp32"),
        "our loop, micro-batches of 8": Hpsearch(job, micro_batch=8),
        "our loop, gradient checkpointing": Hpsearch(job, gradient_checkpointing=True),
        "our loop, data gathered in host memory": _Host(job),
    }


class _Host(Hpsearch):
    """hpsearch's loop when no data fits on the device: batches are gathered and copied."""

    def train(self, on_step: Callable[[], None]) -> Outcome:
        """Train one trial."""
        with mock.patch.object(residence, "SHARE", 0.0):
            return super().train(on_step)


def ms_a_sample(train: Callable[[Callable[[], None]], Outcome], job: Job, samples: int) -> float:
    """Milliseconds per sample over the steps of one epoch, without the first ones."""
    clock = time.process_time if job.device == "cpu" else time.perf_counter
    steps = -(-samples // job.batch_size)
    ends: list[float] = []

    def on_step() -> None:
        if job.device != "cpu" and len(ends) + 1 in (WARM_UP, steps):
            torch.cuda.synchronize()
        ends.append(clock())

    train(on_step)
    return (ends[-1] - ends[WARM_UP - 1]) / (samples - WARM_UP * job.batch_size) * 1000


def main() -> None:
    """Measure the variants in turn, and print medians."""
    given = arguments(
        __doc__,
        {"samples": 256, "repeats": 1, "model": None},
        data=Path,
        model=Path,
        samples=256,
        repeats=3,
    )
    samples, repeats = given.samples, given.repeats
    with tempfile.TemporaryDirectory() as name:
        make_job(Path(name), given.data, given.model, samples)
        job = Job(Path(name), device())
        contenders = variants(job)
        found: dict[str, list[float]] = {variant: [] for variant in contenders}
        for _ in range(repeats):
            for variant, contender in contenders.items():
                found[variant].append(ms_a_sample(contender.train, job, samples))
    bare = statistics.median(found["all, bare"])
    rows = [
        {
            "variant": variant,
            "ms_a_sample": statistics.median(times),
            "fastest": min(times),
            "slowest": max(times),
            "times_bare": statistics.median(times) / bare,
            "repeats": repeats,
        }
        for variant, times in found.items()
    ]
    show(f"One epoch over {samples} texts", rows, given.json)


if __name__ == "__main__":
    main()
