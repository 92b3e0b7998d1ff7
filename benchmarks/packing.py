"""How many small trials a GPU trains at once: samples a second and trials a minute, by slots.

    python benchmarks/packing.py [--data DIR] [--model PATH] [--samples 2560] [--epochs 8]
                                 [--slots 1 2 4 8 16] [--seconds 6] [--eager] [--mps] [--quick]
                                 [--json FILE]

Each slot is a process that trains one trial after the other, with its evaluation and checkpoint, as
a worker does. The slots are started once, and train together for some seconds, first one of them,
then two, and so on. With --mps they share a multi-process service (`nvidia-cuda-mps-control`),
which lets kernels of several processes run at once; with --eager steps are not captured.
"""

import argparse
import contextlib
import multiprocessing
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loop import EnoughError, device, make_job
from tables import show


class Window:
    """The steps of a slot until a deadline."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self.steps = self.trials = 0

    def __call__(self) -> None:
        """Count a step; ends the trial at the deadline."""
        self.steps += 1
        if time.monotonic() > self._deadline:
            raise EnoughError


def slot(
    number: int, folder: Path, options: argparse.Namespace, barrier: Any, results: Any
) -> None:
    """Train trials in this process, in the windows in which so many slots are active."""
    import torch

    from loops.contenders import Hpsearch, Job

    torch.set_num_threads(1)
    job = Job(folder, device())
    settings = {"compile": "never"} if options.eager else {}
    contender = Hpsearch(job, options.epochs, **settings)
    contender.train(lambda: None)
    for active in options.slots:
        barrier.wait()
        window = Window(time.monotonic() + options.seconds)
        began = time.monotonic()
        with contextlib.suppress(EnoughError):
            while number < active:
                contender.train(window)
                window.trials += 1
        seconds = time.monotonic() - began
        memory = torch.cuda.memory_reserved() / 1e6 if job.device == "cuda" else 0.0
        if number < active:
            results.put((active, window.steps * job.batch_size / seconds, memory))
        barrier.wait()


@contextlib.contextmanager
def service(wanted: bool) -> Iterator[None]:
    """A multi-process service of NVIDIA's for the processes of the context."""
    if not wanted:
        yield
        return
    with tempfile.TemporaryDirectory() as name:
        for variable in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            os.environ[variable] = name
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True)
        try:
            yield
        finally:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False)


def measured(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each number of slots."""
    context = multiprocessing.get_context("spawn")
    most = max(options.slots)
    barrier, results = context.Barrier(most + 1), context.Queue()
    slots = [
        context.Process(target=slot, args=(number, folder, options, barrier, results), daemon=True)
        for number in range(most)
    ]
    for each in slots:
        each.start()
    rows = []
    alone = 0.0
    for active in options.slots:
        barrier.wait(timeout=180)
        barrier.wait(timeout=180)
        found = [results.get(timeout=10) for _ in range(active)]
        total = sum(samples for _, samples, _ in found)
        alone = alone or total
        rows.append(
            {
                "slots": active,
                "samples_s": total,
                "of_first": total / alone,
                "samples_s_each": total / active,
                "trials_min": 60 * total / (options.samples * options.epochs),
                "MB_each": max(memory for *_, memory in found),
            }
        )
    for each in slots:
        each.join(timeout=30)
    return rows


def main() -> None:
    """Measure numbers of slots one after the other, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="with train.csv and test.csv")
    parser.add_argument("--model", type=Path, metavar="PATH", help="a pretrained model's folder")
    parser.add_argument("--samples", type=int, default=2560, help="texts of an epoch")
    parser.add_argument("--epochs", type=int, default=8, help="of a trial")
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--seconds", type=float, default=6.0, help="for each number of slots")
    parser.add_argument("--eager", action="store_true", help="do not capture steps")
    parser.add_argument("--mps", action="store_true", help="with a multi-process service")
    parser.add_argument("--quick", action="store_true", help="1 and 2 slots on 256 texts")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.quick:
        options.slots, options.samples, options.epochs = [1, 2], 256, 1
        options.seconds = 2.0
    with tempfile.TemporaryDirectory() as name, service(options.mps):
        folder = Path(name)
        make_job(folder, options.data, options.model, options.samples)
        rows = measured(folder, options)
    how = ("eager" if options.eager else "captured") + (", MPS" if options.mps else "")
    what = f"Trials of {options.epochs} epochs of {options.samples} texts"
    show(f"{what} at once on {device()}, {how}", rows, options.json)


if __name__ == "__main__":
    main()
