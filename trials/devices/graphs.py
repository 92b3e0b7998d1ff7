"""Work on a device that is captured once and replayed as one launch: a CUDA graph.

On a CPU a replay does the work again, on the same tensors.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Tensors = tuple[torch.Tensor, ...]


class NotCapturableError(RuntimeError):
    """Work cannot be captured; the message says why."""


class Graph:
    """Captured work on tensors that stay in their places.

    Args:
        work: It has been done before on this device, which loads what it needs.
        pool: Memory that graphs share which are not replayed at the same time; None on a CPU.

    Raises:
        NotCapturableError: It waits for the device, for instance.
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
    """The memory of a family of graphs; None on a CPU."""
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
        self._on_host = self._of_host()
        self._on_device = self._of_device()

    def _of_host(self) -> Any:
        of_numpy: Any = np.random.get_state()
        found: list[Any] = [random.getstate(), str(of_numpy[1].tolist()), of_numpy[2:]]
        if self._device.type == "cuda":
            found.append(bytes(torch.get_rng_state().numpy()))
        return found

    def _of_device(self) -> torch.Tensor:
        if self._device.type == "cuda":
            return torch.cuda.get_rng_state(self._device)
        return torch.get_rng_state()

    def restore(self) -> None:
        """Let the device's generator draw the same again."""
        if self._device.type == "cuda":
            torch.cuda.set_rng_state(self._on_device, self._device)
        else:
            torch.set_rng_state(self._on_device)

    def has_drawn_on_host(self) -> bool:
        """True if a number was drawn since that no replay would draw again."""
        return bool(self._of_host() != self._on_host)
