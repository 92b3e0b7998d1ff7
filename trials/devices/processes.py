"""One trial on several processes, each with its own GPU (or CPU): the samples of each, and how they
stay together.

    torchrun --nproc-per-node 2 -m trials SETTINGS.yaml --out DIR

Every process holds the whole model and makes the same decisions. A batch is the one that a single
process would have trained on. Each rank takes its share of the rows and divides its loss by the
targets of the whole batch, so that the gradients add up to those of the batch. What could differ
between ranks (clocks, signals, rounding in an evaluation) is taken from rank 0 or agreed on before
anything depends on it. Only rank 0 writes and prints.

Without a launcher there is one rank, and nothing is exchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

T = TypeVar("T")
Ints = npt.NDArray[np.integer]

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""The environment variables that torchrun sets in each process."""
PATIENCE = timedelta(minutes=30)
"""How long a rank waits for the others: as long as rank 0 may take to write a checkpoint."""


class Replicable(Protocol):
    """What is replicated: a model with its loss, such as a `Workload`."""

    model: nn.Module

    def loss_sum(self, batch: Any) -> torch.Tensor:
        """The sum of the losses of all targets of a micro-batch."""


@dataclass(frozen=True)
class StepCounts:
    """What one rank reports about an optimizer step, or what all ranks have agreed on.

    Args:
        tokens: Tokens in the rank's share of the batch; in the whole batch once the ranks have
            agreed.
        cells: The same with padding.
        seconds: Trained so far; that of rank 0 counts.
        save: Whether it is time to save; that of rank 0 counts.
    """

    tokens: int
    cells: int
    seconds: float
    save: bool


class Group:
    """The ranks that train one trial together.

    Args:
        rank: Which of them this process is, from 0.
        size: How many there are.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size
        self._asked: Callable[[], bool] = lambda: False
        self._stopping = False

    @property
    def first(self) -> bool:
        """Whether this process is rank 0, which writes and prints."""
        return self.rank == 0

    def listen(self, asked: Callable[[], bool]) -> None:
        """From now on, `asked` tells whether this process was asked to stop."""
        self._asked = asked

    @property
    def stopping(self) -> bool:
        """Whether any rank was asked to stop: equal on all ranks, because they learn of it with the
        same step."""
        if self.size == 1:
            return self._asked()
        return self._stopping

    def share(self, rows: Ints, weight: float) -> tuple[Ints, float]:
        """This rank's part of a batch, and what to divide the sum of its losses by.

        Returns: Rows, of which there is always one: where there are more ranks than rows, the last
            ranks repeat the first row with an infinite weight, which makes their loss and gradients
            zero.
        """
        if self.size == 1:
            return rows, weight
        mine = rows[self.rank :: self.size]
        if len(mine):
            return mine, weight
        return rows[:1], float("inf")

    def agree_on(self, step: StepCounts) -> StepCounts:
        """What all ranks report about a step, in one exchange between their processors that waits
        for no device."""
        if self.size == 1:
            return step
        ruling = [0.0, 0.0]
        if self.first:
            ruling = [step.seconds, float(step.save)]
        asked = float(self._asked())
        own = torch.tensor([step.tokens, step.cells, asked, *ruling], dtype=torch.float64)
        exchanged = self.total(own)
        tokens, cells, asked, seconds, save = exchanged.tolist()
        self._stopping = asked > 0
        return StepCounts(int(tokens), int(cells), seconds, save > 0)

    @torch.no_grad()
    def level(self, buffers: Sequence[torch.Tensor]) -> None:
        """Give all ranks the buffers of rank 0, as DistributedDataParallel does.

        Each rank's forward passes have changed them by its own rows, such as the running statistics
        of a batch norm.
        """
        if self.size == 1:
            return
        for buffer in buffers:
            value = buffer.clone(memory_format=torch.contiguous_format)
            distributed.broadcast(value, src=0)
            # A constant, whose elements may share their memory, cannot be written.
            if not torch.equal(buffer, value):
                buffer.copy_(value)

    def own(self, parts: Sequence[T]) -> Sequence[T]:
        """This rank's part of what is to be measured; empty for the last ranks where there are more
        ranks than parts."""
        return parts[self.rank :: self.size]

    def spread(
        self, parts: Sequence[Ints], measure: Callable[[Ints], tuple[torch.Tensor, ...]]
    ) -> list[tuple[torch.Tensor, ...]]:
        """What `measure` finds in every part, in their order.

        Each part is measured on one rank, and all ranks get the results, on the CPU.
        """
        found = [measure(part) for part in self.own(parts)]
        if self.size == 1:
            return found
        # Only here, when everything is measured, does this wait for the device.
        on_cpu = [tuple(tensor.cpu() for tensor in tensors) for tensors in found]
        shares = self.gather(on_cpu)
        results = []
        for number in range(len(parts)):
            place, rank = divmod(number, self.size)
            results.append(shares[rank][place])
        return results

    def total(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum of a tensor over all ranks, in place; the processor does not wait for the
        device."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def added(self, *numbers: int) -> list[int]:
        """The sum of each number over all ranks."""
        if self.size == 1 or not numbers:
            return list(numbers)
        sums = self.total(torch.tensor(numbers))
        return [int(number) for number in sums.tolist()]

    def gather(self, value: T) -> list[T]:
        """What every rank has, in the order of their ranks."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    def agree(self, value: T) -> T:
        """What rank 0 has."""
        if self.size == 1:
            return value
        values = [value]
        distributed.broadcast_object_list(values, src=0)
        return values[0]

    def once(self, do: Callable[[], T]) -> T:
        """Do something on rank 0 alone; all ranks get its result once it is done."""
        result = do() if self.first else None
        return self.agree(result)  # type: ignore[return-value]  # rank 0's is the one


class Replica:
    """The loss of a workload on one rank, which keeps its gradients equal to those of all other
    ranks.

    With several ranks the model runs inside `DistributedDataParallel` (Li et al. 2020,
    arXiv:2006.15704), which adds gradients up while the backward pass continues.
    """

    def __init__(self, workload: Replicable, group: Group) -> None:
        self._loss_sum: Callable[[Any], torch.Tensor] = workload.loss_sum
        self._parallel: DistributedDataParallel | None = None
        if group.size > 1:
            # Buffers are levelled before an evaluation and a save, not in every step.
            self._parallel = DistributedDataParallel(
                _Forward(workload), gradient_as_bucket_view=True, broadcast_buffers=False
            )
            self._parallel.register_comm_hook(None, _add_up)
            self._loss_sum = self._parallel

    def loss_sum(self, batch: Any) -> torch.Tensor:
        """The sum of the losses of all targets in this rank's micro-batch."""
        return self._loss_sum(batch)

    def synchronised(self, last: bool) -> AbstractContextManager[None]:
        """The context of a micro-batch's forward pass: ranks exchange gradients only in the `last`
        one of a batch."""
        if last or self._parallel is None:
            return nullcontext()
        return self._parallel.no_sync()


class _Forward(nn.Module):
    """The loss as a module: what DistributedDataParallel wraps must be one, and be called for every
    forward pass."""

    def __init__(self, workload: Replicable) -> None:
        super().__init__()
        self.model = workload.model
        self._workload = [workload]  # in a list, so that it is not a part of the module

    def forward(self, batch: Any) -> torch.Tensor:
        return self._workload[0].loss_sum(batch)


# Without annotations: torch compares them, and does not resolve texts.
def _add_up(state, bucket):  # type: ignore[no-untyped-def]
    """Add gradients up: each rank's loss is divided by the whole batch already."""
    work = distributed.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


_joined: list[Group] = []
"""The group that this process has joined; empty without one."""


def current() -> Group:
    """The ranks this process belongs to."""
    if not _joined:
        return Group()
    return _joined[-1]


def device(environment: Mapping[str, str] = os.environ) -> str:
    """The device of this process: the GPU of its number on this machine, or the CPU."""
    if not torch.cuda.is_available():
        return "cpu"
    if not launched(environment):
        return "cuda"
    number = environment.get("LOCAL_RANK", "0")
    return f"cuda:{number}"


def launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher started this process as one of several."""
    is_complete = all(name in environment for name in LAUNCHED)
    if not is_complete:
        return False
    return int(environment["WORLD_SIZE"]) > 1


def use(device: torch.device) -> None:
    """Make a GPU the current one of this thread.

    Pinned memory, and what is asked for without a device, belong to the current GPU, which is the
    first one at the start. A device without a number is the current one already.
    """
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)


@contextmanager
def joined(device: str) -> Iterator[Group]:
    """The ranks that a launcher started, connected for as long as the context lasts; one rank
    without a launcher."""
    if not launched():
        yield Group()
        return
    use(torch.device(device))
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    rank, size = distributed.get_rank(), distributed.get_world_size()
    _joined.append(Group(rank, size))
    try:
        yield current()
    finally:
        _joined.pop()
        distributed.destroy_process_group()
