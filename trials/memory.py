"""How many samples go through the model at once, found out and lowered where the device has too little memory.

An optimizer step accumulates the gradients of its batch over micro-batches. Their size changes memory, not results, so
it can follow the device: `auto` rehearses the longest batch, whole, then in halves, until it fits; and whenever a step
runs out of memory, whatever the size was chosen by, the same step is done again in halves. What was learnt holds for
all runs of the process with the same model, lengths, arithmetic and device; `facts` and `learn` carry it elsewhere.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch
    from torch import nn

    from trials.precision import Precision
    from trials.settings import Settings
    from trials.workload import Workload

AUTO = "auto"
T = TypeVar("T")
Facts = Mapping[str, Sequence[int | None]]
"""By the kind of run: the largest micro-batch that fits for sure, and the smallest that does not (None: not seen)."""


@dataclass
class Known:
    """What is known of one kind of run."""

    fits: int = 0
    """The largest micro-batch that fits for sure."""
    fails: int | None = None
    """The smallest that does not."""

    def fitted(self, size: int) -> None:
        """A micro-batch of `size` has fitted at its longest."""
        self.fits = max(self.fits, size)

    def failed(self, size: int) -> None:
        """A micro-batch of `size` has run out of memory."""
        self.fails = size if self.fails is None else min(self.fails, size)
        self.fits = min(self.fits, size - 1)

    def may_fit(self, size: int) -> bool:
        """Whether nothing speaks against it."""
        return self.fails is None or size < self.fails


_known: dict[str, Known] = {}
"""What this process knows, by the kind of run."""


def facts() -> dict[str, tuple[int, int | None]]:
    """What this process has learnt so far."""
    return {kind: (known.fits, known.fails) for kind, known in _known.items() if known.fits or known.fails}


def learn(told: Facts) -> None:
    """Take over what others have learnt; where they disagree, what does not fit counts."""
    for kind, (fits, fails) in told.items():
        known = _known.setdefault(kind, Known())
        known.fitted(fits or 0)
        smallest = min((size for size in (fails, known.fails) if size is not None), default=None)
        if smallest is not None:
            known.failed(smallest)


def merged(known: Facts, told: Facts) -> dict[str, list[int | None]]:
    """Two sets of facts as one, as plain data."""
    result = {kind: list(fact) for kind, fact in known.items()}
    for kind, (fits, fails) in told.items():
        old_fits, old_fails = result.get(kind, (0, None))
        smallest = min((size for size in (fails, old_fails) if size is not None), default=None)
        most = max(fits or 0, old_fits or 0)
        result[kind] = [most if smallest is None else min(most, smallest - 1), smallest]
    return result


class MicroBatch:
    """The micro-batch of one run.

    Args:
        asked: Samples, None for the whole batch, or `AUTO`.
        batch: Samples in one optimizer step.
        kind: What the memory of a sample depends on: runs of one kind learn from each other.
        retries: Whether to try again in halves. Not where several processes train together: the others would wait
            for gradients that do not come.
    """

    def __init__(self, asked: int | str | None, batch: int, kind: str, retries: bool = True) -> None:
        self._known = _known.setdefault(kind, Known())
        self._retries = retries
        self._sought = asked == AUTO
        self.size = batch if asked is None or isinstance(asked, str) else min(asked, batch)
        while self.size > 1 and not self._known.may_fit(self.size):
            self.size = _half(self.size)

    @property
    def wanted(self) -> bool:
        """Whether the largest size that fits is asked for and not known yet."""
        return self._sought and self.size > self._known.fits

    def rehearse(self, attempt: Callable[[int], object]) -> None:
        """Find the largest size that fits.

        Args:
            attempt: Forward and backward of the longest batch in micro-batches of the size it is given.
        """
        self.fitting(self.size, attempt)
        self._known.fitted(self.size)

    def fitting(self, rows: int, attempt: Callable[[int], T]) -> T:
        """Call `attempt` with the size, and again with halves of it while there is too little memory.

        Args:
            rows: Samples that it is about; the last batch of an epoch may have fewer than a micro-batch.
            attempt: Starts afresh each time: clears gradients and seeds what is random.

        Raises:
            MemoryError, RuntimeError: Not even a single sample fits; or what `attempt` raises.
        """
        while True:
            try:
                return attempt(self.size)
            except (MemoryError, RuntimeError) as error:
                tried = min(self.size, rows)
                if not self._retries or tried <= 1 or not is_out_of_memory(error):
                    raise
            # Only here, after the except block, is the error gone, and with it the tensors its frames held.
            self._known.failed(tried)
            while self.size >= tried:
                self.size = _half(self.size)
            release_memory()

    def take(self, size: int) -> None:
        """Go on with the size that a checkpoint was trained with: the same sums in the same order."""
        self.size, self._sought = size, False


def micro_batch_of(
    workload: Workload, settings: Settings, precision: Precision, device: torch.device, processes: int
) -> MicroBatch:
    """The micro-batch of a run that so many processes train together."""
    import torch

    from trials import order

    parameters = list(workload.model.parameters())
    kind = (
        type(workload.model).__name__,
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in parameters if p.requires_grad),
        int(workload.lengths.max()),
        precision.name,
        torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        settings.optimizer,
        settings.gradient_checkpointing,
    )
    batch = order.most_samples(workload.lengths, settings)
    return MicroBatch(settings.micro_batch, batch, "/".join(map(str, kind)), retries=processes == 1)


def _half(size: int) -> int:
    return (size + 1) // 2


@contextmanager
def unchanged_buffers(model: nn.Module) -> Iterator[None]:
    """Put back what a rehearsal leaves in a model, such as the running means of a batch norm."""
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for buffer, value in before:
            buffer.copy_(value)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a device or in the process."""
    # By name, so that a trial without torch does not import it only to fail.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    words = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in words or "can't allocate memory" in words)


def allocated_bytes(device: str) -> int | None:
    """Memory of a GPU that tensors of this process hold now; None on other devices."""
    torch = sys.modules.get("torch")
    if torch is None or not device.startswith("cuda"):
        return None
    return int(torch.cuda.memory_allocated(device))


def release_memory() -> None:
    """Give back what nobody uses: reference cycles, and the GPU memory torch keeps for later."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
