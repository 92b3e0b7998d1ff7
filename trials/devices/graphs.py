"""Work on a device that is captured once and replayed as one launch: a CUDA graph.

On a CPU a replay does the work again, on the same tensors.
"""

import contextlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from trials.devices.memory import is_out_of_memory

Tensors = tuple[torch.Tensor, ...]


class NotCapturableError(RuntimeError):
    """Work cannot be captured; the message says why."""


_COPIES = (torch.ops.aten.copy_, torch.ops.aten._to_copy, torch.ops.aten.to)


class Reads(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Notes the memory that operations read and have not made themselves. A graph of them knows the
    addresses alone: what a model keeps of one length, and drops at the next, must stay where it
    was. `held`: the memory, which is not freed before this."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.held: dict[int, torch.UntypedStorage] = {}
        self._made: set[int] = set()

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Do an operation. Raises NotCapturableError if it copies from the processor's memory,
        which may change."""
        kwargs = kwargs or {}
        read = _tensors((args, kwargs))
        found = function(*args, **kwargs)
        made = _tensors(found)
        for storage in _storages(read):
            if storage._cdata not in self._made:
                self.held[storage._cdata] = storage
        self._made |= {storage._cdata for storage in _storages(made)} - self.held.keys()
        is_from_host = function.overloadpacket in _COPIES and read[-1].is_cpu and made[0].is_cuda
        if is_from_host and not _waits(function, args, kwargs):
            raise NotCapturableError("the model copies from the processor's memory")
        return found


def reads_of(work: Callable[[], object]) -> object:
    """Do work, and hold the memory that it reads for as long as the result is held. Raises
    MemoryError or RuntimeError if memory ran out, NotCapturableError if the work copies from the
    processor's memory, or cannot be watched."""
    reads = Reads()
    try:
        with reads:
            work()
    except Exception as error:
        if is_out_of_memory(error) or isinstance(error, NotCapturableError):
            raise
        raise NotCapturableError(str(error) or type(error).__name__) from error
    return reads.held


def _waits(copy: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """True if a copy waits for the device, which no capture lets it do."""
    names = [argument.name for argument in copy._schema.arguments]
    if "non_blocking" not in names:
        return True
    place = names.index("non_blocking")
    given = args[place] if place < len(args) else False
    return not kwargs.get("non_blocking", given)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _storages(tensors: list[torch.Tensor]) -> list[torch.UntypedStorage]:
    return [each.untyped_storage() for each in tensors if each.layout == torch.strided]


class Graph:
    """Captured work on tensors that stay in their places. Raises NotCapturableError if it waits for
    the device, for instance.

    Args:
        work: It has been done before on this device, which loads what it needs.
        pool: Memory that graphs share which are not replayed at the same time; None on a CPU.
    """

    def __init__(self, work: Callable[[], Tensors], pool: Any) -> None:
        self._work: Callable[[], Tensors] | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._results: Tensors = ()
        if pool is None:
            self._work = work
            return
        self._graph = torch.cuda.CUDAGraph()
        capture = torch.cuda.graph(self._graph, pool, capture_error_mode="thread_local")
        try:
            with capture:
                self._results = work()
        except Exception as error:
            _end(pool)
            raise NotCapturableError(str(error) or type(error).__name__) from error

    def replay(self) -> Tensors:
        """Do the work again, with the device's present random state; returns its results."""
        if self._work is not None:
            return self._work()
        assert self._graph is not None
        self._graph.replay()
        # The next replay, of this graph or another of its pool, may write in their places.
        return tuple(result.clone() for result in self._results)


def new_pool(device: torch.device) -> Any:
    return torch.cuda.graph_pool_handle() if device.type == "cuda" else None


def _end(pool: Any) -> None:
    """Let a device draw and allocate again: a capture that failed has told it of no end."""
    torch.cuda.synchronize()
    number = torch.cuda.current_device()
    generator = torch.cuda.default_generators[number]
    generator.graphsafe_set_state(generator.clone_state())
    with contextlib.suppress(RuntimeError):  # it was told
        torch._C._cuda_endAllocateToPool(number, pool)


class RandomState:
    """The state of the generators of this process and of a device, at this moment."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._python, self._numpy = random.getstate(), np.random.get_state()
        self._torch = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore(self) -> None:
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state(self._cuda, self._device)

    def has_drawn_on_host(self) -> bool:
        """True if a number was drawn since that no replay would draw again."""
        of_numpy = zip(np.random.get_state(), self._numpy, strict=True)
        is_same = random.getstate() == self._python
        is_same = is_same and all(np.array_equal(now, then) for now, then in of_numpy)
        if self._cuda is not None:
            is_same = is_same and torch.equal(torch.get_rng_state(), self._torch)
        return not is_same
