"""One trial on several processes, each with its own GPU (or CPU): who takes which samples, and how they stay together.

    torchrun --nproc-per-node 2 -m trials SETTINGS.yaml --out DIR

Every process holds the whole model and makes the same decisions. A batch is the one that a single process would have
trained; each rank takes its share of the rows and divides its loss by the targets of the whole batch, so that the
gradients add up to those of the batch. What could differ between ranks - clocks, a signal, rounding in an evaluation -
is taken from rank 0 or agreed upon before anything depends on it. Only rank 0 writes and prints.

Without a launcher there is one rank, and every method here does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from trials.batching import Ints

T = TypeVar("T")

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells a process through its environment."""
PATIENCE = timedelta(minutes=30)
"""How long a rank waits for the others: as long as rank 0 may take to write a checkpoint."""


class Loss(Protocol):
    """What is replicated: a `Workload`, as far as training needs it."""

    model: nn.Module

    def loss_sum(self, batch: Any) -> torch.Tensor:
        """The sum of the losses of all targets of a micro-batch."""


class Group:
    """The ranks that train one trial together.

    Args:
        rank: Which of them this process is, from 0.
        size: How many there are.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return self.rank == 0

    def share(self, rows: Ints, weight: float) -> tuple[Ints, float]:
        """This rank's part of a batch, and what to divide the sum of its losses by.

        Args:
            rows: The samples of the whole batch. Sorted by length, every rank gets as many short and long ones.
            weight: The targets of the whole batch.

        Returns: Rows, of which there is always one: where the ranks are more than the rows, the last ranks repeat the
            first row with an infinite weight, which makes their loss and gradients zero.
        """
        if self.size == 1:
            return rows, weight
        mine = rows[self.rank :: self.size]
        return (mine, weight) if len(mine) else (rows[:1], float("inf"))

    def replicate(self, workload: Loss) -> Replica:
        """The workload's loss, with gradients that add up over all ranks."""
        return Replica(workload, self)

    def total(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum of a tensor over all ranks, in place; nothing waits for the device."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def added(self, *numbers: int) -> list[int]:
        """The sum of each number over all ranks."""
        if self.size == 1 or not numbers:
            return list(numbers)
        return [int(number) for number in self.total(torch.tensor(numbers)).tolist()]

    def own(self, parts: Sequence[T]) -> Sequence[T]:
        """This rank's part of what is to be measured; none where the ranks are more."""
        return parts[self.rank :: self.size]

    def spread(
        self, parts: Sequence[Ints], measure: Callable[[Ints], tuple[torch.Tensor, ...]]
    ) -> list[tuple[torch.Tensor, ...]]:
        """What `measure` finds in every part, in their order: each part is measured on one rank, and all ranks get
        the results, on the CPU."""
        found = [measure(part) for part in self.own(parts)]
        if self.size == 1:
            return found
        # Only here, when all is measured, is the device waited for.
        shares = self.gather([tuple(tensor.cpu() for tensor in tensors) for tensors in found])
        return [shares[number % self.size][number // self.size] for number in range(len(parts))]

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
        """Do something on rank 0 alone, and tell all ranks its result once it is done."""
        return self.agree(do() if self.first else None)  # type: ignore[return-value]  # rank 0's is the one

    def any(self, value: bool) -> bool:
        """Whether it is so on any rank."""
        return any(self.gather(value))


class Replica:
    """The loss of a workload on one rank, which keeps its gradients equal to those of all others.

    With several ranks the model runs inside `DistributedDataParallel` (Li et al. 2020, arXiv:2006.15704), which adds
    gradients up while the backward pass still goes on.
    """

    def __init__(self, workload: Loss, group: Group) -> None:
        self._loss_sum: Callable[[Any], torch.Tensor] = workload.loss_sum
        self._parallel: DistributedDataParallel | None = None
        if group.size > 1:
            self._parallel = DistributedDataParallel(_Forward(workload), gradient_as_bucket_view=True)
            self._parallel.register_comm_hook(None, _add_up)
            self._loss_sum = self._parallel

    def loss_sum(self, batch: Any) -> torch.Tensor:
        """The sum of the losses of all targets in this rank's micro-batch."""
        return self._loss_sum(batch)

    def synchronised(self, last: bool) -> AbstractContextManager[None]:
        """The context of a micro-batch's forward pass: ranks exchange gradients only in the `last` one of a batch."""
        return nullcontext() if last or self._parallel is None else self._parallel.no_sync()


class _Forward(nn.Module):
    """The loss as a module: what DistributedDataParallel wraps must be one, and be called for every forward pass."""

    def __init__(self, workload: Loss) -> None:
        super().__init__()
        self.model = workload.model
        self._workload = [workload]  # in a list, so that it is no part of the module

    def forward(self, batch: Any) -> torch.Tensor:
        return self._workload[0].loss_sum(batch)


def _add_up(state, bucket):  # type: ignore[no-untyped-def]  # torch compares annotations, and knows no texts
    """Gradients add up: each rank's is of a loss that is divided by the whole batch already."""
    work = distributed.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def current() -> Group:
    """The ranks this process belongs to."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return Group()
    return Group(distributed.get_rank(), distributed.get_world_size())


def device(environment: Mapping[str, str] = os.environ) -> str:
    """The device of this process: the GPU of its number on this machine, or the CPU."""
    if not torch.cuda.is_available():
        return "cpu"
    return f"cuda:{environment.get('LOCAL_RANK', '0')}" if launched(environment) else "cuda"


def launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher started this process as one of several."""
    return all(name in environment for name in LAUNCHED) and int(environment["WORLD_SIZE"]) > 1


@contextmanager
def joined(device: str) -> Iterator[Group]:
    """The ranks that a launcher started, connected for as long as the context lasts; one rank without a launcher.

    Args:
        device: Where this process trains. GPUs talk over NCCL, and what is on the CPU over Gloo.
    """
    if not launched():
        yield Group()
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield current()
    finally:
        distributed.destroy_process_group()
