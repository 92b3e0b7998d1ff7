"""The size of micro-batches: found by trying, and lowered if the device has too little memory.

An optimizer step accumulates the gradients of its batch over micro-batches. Their size is a matter
of memory; it changes the order of sums, what is drawn at random, and what batch norms see. `auto`
rehearses the longest batch, whole, then in halves, until it fits; and whenever a step runs out of
memory, however the size was chosen, the same step is done again in halves. The same holds for
batches of an evaluation.

The process remembers the size that fits, for its later runs with the same model, lengths,
arithmetic and device.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from trials.data.batching import Ints
from trials.data.workload import Workload
from trials.devices.memory import entitled_bytes, is_out_of_memory, release_memory
from trials.devices.precision import Precision
from trials.settings import Settings

AUTO = "auto"  # the value of the setting `micro_batch` that asks for the largest size that fits
T = TypeVar("T")


@dataclass
class Limits:
    """The largest micro-batch of a kind of run that has fitted, and the smallest that has not."""

    fits: int = 0
    fails: int | None = None


_limits: dict[str, Limits] = {}  # the limits that this process has found, by the kind of run


class MicroBatch:
    """The micro-batch of one run.

    Args:
        asked: Samples, None for the whole batch, or `AUTO`.
        batch: Samples in one optimizer step.
        kind: Runs of one kind need the same memory, and share their limits.
        retries: Whether to try again in halves; not with several processes, because the others
            would wait for gradients that do not come.
    """

    def __init__(
        self, asked: int | str | None, batch: int, kind: str, retries: bool = True
    ) -> None:
        self._limits = _limits.setdefault(kind, Limits())
        self._retries = retries
        self._sought = asked == AUTO
        self.size = batch
        if isinstance(asked, int):
            self.size = min(asked, batch)
        if self._limits.fails is not None:
            self._halve_below(self._limits.fails)

    @property
    def must_be_found(self) -> bool:
        return self._sought and self.size > self._limits.fits

    def rehearse(self, attempt: Callable[[int], object]) -> None:
        self.fitting(self.size, attempt)
        self._limits.fits = max(self._limits.fits, self.size)

    def fitting(self, rows: int, attempt: Callable[[int], T]) -> T:
        """Call `attempt` with the size, and with halves of it while there is too little memory.
        Raises MemoryError or RuntimeError if not even a single sample fits."""
        while True:
            tried = min(self.size, rows)
            try:
                return attempt(self.size)
            except (MemoryError, RuntimeError) as error:
                may_retry = self._retries and tried > 1
                if not may_retry or not is_out_of_memory(error):
                    raise
            # After the except block the error and the tensors of its frames are gone.
            fails = self._limits.fails
            self._limits.fails = tried if fails is None else min(fails, tried)
            self._halve_below(tried)
            release_memory()

    def _halve_below(self, limit: int) -> None:
        while self.size > 1 and self.size >= limit:
            self.size = (self.size + 1) // 2

    def resume_with(self, size: int) -> None:
        """Continue with the size of a checkpoint, for the same sums in the same order."""
        self.size = size
        self._sought = False


def micro_batch_of(
    workload: Workload, settings: Settings, precision: Precision, processes: int
) -> MicroBatch:
    device = precision.device
    memory = _kind(workload.model, workload.lengths, precision, device)
    kind = f"{memory}/{settings.optimizer}/{settings.gradient_checkpointing}"
    return MicroBatch(settings.micro_batch, settings.batch_size, kind, retries=processes == 1)


def evaluation_batch_of(
    model: nn.Module, lengths: Ints, settings: Settings, precision: Precision, device: torch.device
) -> MicroBatch:
    """The evaluation batch of a run, of samples with these lengths; each process has its own."""
    kind = "evaluation/" + _kind(model, lengths, precision, device)
    size = settings.eval_batch_size
    return MicroBatch(size, size, kind)


@contextmanager
def unchanged_buffers(model: nn.Module) -> Iterator[None]:
    """Put back a model's buffers, such as the running means of a batch norm."""
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for buffer, value in before:
            buffer.copy_(value)


def _kind(model: nn.Module, lengths: Ints, precision: Precision, device: torch.device) -> str:
    """The name of runs that need and have the same memory."""
    numbers = trained = 0
    for parameter in model.parameters():
        numbers += parameter.numel()
        if parameter.requires_grad:
            trained += parameter.numel()
    name, memory = device.type, "all"
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        mib = entitled_bytes(device) >> 20
        memory = f"{mib} MiB"
    longest = lengths.max(axis=0)
    model_name = type(model).__name__
    parts = (model_name, numbers, trained, longest, precision.name, name, memory)
    return "/".join(map(str, parts))
