"""One trial on several processes, each with its own GPU (or CPU).

    torchrun --nproc-per-node 2 -m trials SETTINGS.yaml --out DIR

Every process holds the whole model and makes the same decisions. A batch is the one that a single
process would train. Each rank takes its share of the rows and divides its loss by the targets of
the whole batch, so that the gradients of all ranks add up to the batch's. Values that could differ
between ranks (clocks, signals, rounding in an evaluation) are taken from rank 0 or agreed on before
anything depends on them. Only rank 0 writes and prints.

Without a launcher there is one rank, and nothing is exchanged.
"""

import os
import warnings
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
_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The whole numbers of so many bytes."""
PATIENCE = timedelta(minutes=30)
"""The longest wait for other ranks, such as for rank 0 to write a checkpoint."""


class Replicable(Protocol):
    """A model with its loss, such as a `Workload`."""

    model: nn.Module

    def loss_sum(self, batch: Any) -> torch.Tensor:
        """The sum of the losses of all targets of a micro-batch."""


@dataclass(frozen=True)
class StepCounts:
    """The counts of an optimizer step, of one rank or as agreed on."""

    tokens: int  # in the rank's share of the batch; in the whole batch once agreed on
    cells: int  # tokens and padding
    seconds: float  # trained so far; rank 0 decides


class Group:
    """The ranks that train one trial together."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size
        self._asked: Callable[[], bool] = lambda: False
        self._stopping = False

    @property
    def first(self) -> bool:
        return self.rank == 0

    def listen(self, asked: Callable[[], bool]) -> None:
        """Let `asked` say from now on whether this process was asked to stop."""
        self._asked = asked

    @property
    def stopping(self) -> bool:
        """True if any rank was asked to stop, by the last step that all have agreed on."""
        if self.size == 1:
            return self._asked()
        return self._stopping

    def share(self, rows: Ints, weight: float) -> tuple[Ints, float]:
        """This rank's part of a batch, and the divisor of the sum of its losses. With more ranks
        than rows, the last ranks repeat the first row with an infinite weight, which makes their
        loss and gradients zero."""
        if self.size == 1:
            return rows, weight
        mine = rows[self.rank :: self.size]
        if len(mine):
            return mine, weight
        return rows[:1], float("inf")

    def agree_on(self, step: StepCounts) -> StepCounts:
        """Agree on the counts of a step, in one exchange that does not wait for the device."""
        if self.size == 1:
            return step
        ruling = step.seconds if self.first else 0.0
        asked = float(self._asked())
        own = torch.tensor([step.tokens, step.cells, asked, ruling], dtype=torch.float64)
        exchanged = self.total(own)
        tokens, cells, asked, seconds = exchanged.tolist()
        self._stopping = asked > 0
        return StepCounts(int(tokens), int(cells), seconds)

    @torch.no_grad()
    def sync(self, buffers: Sequence[torch.Tensor]) -> None:
        """Give all ranks the buffers of rank 0, as DistributedDataParallel does. The running
        statistics of a batch norm, for example, differ by the rows of each rank."""
        if self.size == 1:
            return
        for buffer in buffers:
            value = buffer.clone(memory_format=torch.contiguous_format)
            distributed.broadcast(value, src=0)
            # A constant, whose elements may share their memory, cannot be written.
            if not torch.equal(buffer, value):
                buffer.copy_(value)

    def own(self, parts: Sequence[T]) -> Sequence[T]:
        return parts[self.rank :: self.size]

    def spread(
        self, parts: Sequence[Ints], measure: Callable[[Ints], tuple[torch.Tensor, ...]]
    ) -> list[tuple[torch.Tensor, ...]]:
        """Measure each part on one rank, and give all ranks all results in order, on the CPU."""
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
        """The sum of a tensor over all ranks, in place; does not wait for the device."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def added(self, *numbers: int) -> list[int]:
        if self.size == 1 or not numbers:
            return list(numbers)
        sums = self.total(torch.tensor(numbers))
        return [int(number) for number in sums.tolist()]

    def require_equal(self, model: nn.Module) -> None:
        """Raise RuntimeError with the first parameter that differs if not all ranks have the same
        trained parameters, bit by bit."""
        if self.size == 1:
            return
        trained = [each for each in model.named_parameters() if each[1].requires_grad]
        sums = torch.stack([_checksum(parameter) for _, parameter in trained]).tolist()
        for rank, others in enumerate(self.gather(sums)):
            for (name, _), own, other in zip(trained, sums, others, strict=True):
                if own != other:
                    what = f"parameter {name} of rank {self.rank} differs from that of rank {rank}"
                    raise RuntimeError(f"{what}: the ranks do not train the same model any more")

    def gather(self, value: T) -> list[T]:
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    def agree(self, value: T) -> T:
        if self.size == 1:
            return value
        values = [value]
        distributed.broadcast_object_list(values, src=0)
        return values[0]

    def once(self, do: Callable[[], T]) -> T:
        """Do something on rank 0 alone, and give all ranks its result."""
        result = do() if self.first else None
        return self.agree(result)  # type: ignore[return-value]  # rank 0's is the one


class Replica:
    """The loss of a workload on one rank, with gradients of all ranks together. With several ranks
    the model runs inside `DistributedDataParallel` (Li et al. 2020, arXiv:2006.15704), which adds
    gradients up while the backward pass continues."""

    def __init__(self, workload: Replicable, group: Group) -> None:
        self._loss_sum: Callable[[Any], torch.Tensor] = workload.loss_sum
        self._parallel: DistributedDataParallel | None = None
        if group.size > 1:
            # The name since torch 2.13 is not known to those before it.
            warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
            self._parallel = DistributedDataParallel(
                _Forward(workload),
                gradient_as_bucket_view=True,
                # Buffers are levelled before an evaluation and a save, not in every step.
                broadcast_buffers=False,
                # Pretrained models may have some, such as the mask token of a DINOv2.
                find_unused_parameters=True,
            )
            self._parallel.register_comm_hook(None, _add_up)
            self._loss_sum = self._parallel

    def loss_sum(self, batch: Any) -> torch.Tensor:
        return self._loss_sum(batch)

    def synchronised(self, last: bool) -> AbstractContextManager[None]:
        """The context of a forward pass: ranks exchange gradients only in a batch's `last` one."""
        if last or self._parallel is None:
            return nullcontext()
        return self._parallel.no_sync()


class _Forward(nn.Module):
    """The loss as a module, which DistributedDataParallel needs."""

    def __init__(self, workload: Replicable) -> None:
        super().__init__()
        self.model = workload.model
        self._workload = [workload]  # in a list, so that it is not a part of the module

    def forward(self, batch: Any) -> torch.Tensor:
        return self._workload[0].loss_sum(batch)


# Without annotations: torch compares them, and does not resolve texts.
def _add_up(state, bucket):  # type: ignore[no-untyped-def]
    """Add gradients up, without a mean: each rank's loss is divided by the whole batch already."""
    work = distributed.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def _checksum(parameter: torch.Tensor) -> torch.Tensor:
    bits = parameter.detach().view(_WHOLE[parameter.element_size()])
    return bits.sum(dtype=torch.int64)


_joined: list[Group] = []  # the group that this process has joined; empty without one


def current() -> Group:
    return _joined[-1] if _joined else Group()


def device(environment: Mapping[str, str] = os.environ) -> str:
    if not torch.cuda.is_available():
        return "cpu"
    if not launched(environment):
        return "cuda"
    number = environment.get("LOCAL_RANK", "0")
    return f"cuda:{number}"


def launched(environment: Mapping[str, str] = os.environ) -> bool:
    is_complete = all(name in environment for name in LAUNCHED)
    return is_complete and int(environment["WORLD_SIZE"]) > 1


def use(device: torch.device) -> None:
    """Make a GPU the current one of this thread, for pinned memory and "cuda" without a number."""
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)


def backend(device: str) -> str:
    """The backends of a process group for trainings on a device."""
    return "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"


@contextmanager
def joined(device: str) -> Iterator[Group]:
    """The group of ranks that a launcher started, connected for the length of the context."""
    if not launched():
        yield Group()
        return
    connect(device)
    try:
        yield current()
    finally:
        leave()


def connect(device: str) -> None:
    use(torch.device(device))
    distributed.init_process_group(backend(device), timeout=PATIENCE)
    rank, size = distributed.get_rank(), distributed.get_world_size()
    _joined.append(Group(rank, size))


def leave() -> None:
    """Leave the group, unless training code has done so."""
    _joined.pop()
    if distributed.is_initialized():
        distributed.destroy_process_group()
