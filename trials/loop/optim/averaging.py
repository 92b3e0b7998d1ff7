"""A running mean of the weights (EMA): evaluated and saved in place of the weights that train."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


class Average:
    """An exponential moving average over a model's trainable parameters and floating-point buffers.

    It starts from the model's weights. Early on the decay is smaller, (1 + n) / (10 + n) after n
    updates, so that the first, random weights count less (as in TensorFlow's
    ExponentialMovingAverage). `decay`: the share of the mean that each update keeps, in (0, 1)."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        buffers = [buffer for buffer in model.buffers() if buffer.is_floating_point()]
        live: list[torch.Tensor] = [*trained, *buffers]
        self._live = live
        self._mean = [tensor.detach().clone() for tensor in live]
        self._trained = len(trained)
        self._updates = 0

    @torch.no_grad()
    def update(self) -> None:
        self._updates += 1
        early = (1 + self._updates) / (10 + self._updates)
        decay = min(self._decay, early)
        live = [tensor.detach() for tensor in self._live]
        torch._foreach_lerp_(self._mean, live, 1.0 - decay)

    def buffers(self) -> list[torch.Tensor]:
        return self._mean[self._trained :]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The context in which the model has the averaged weights, by swapping storages."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        pairs = zip(self._live, self._mean, strict=True)
        for number, (live, mean) in enumerate(pairs):
            self._mean[number] = live.data
            live.data = mean

    def state_dict(self) -> dict[str, Any]:
        """The weights that train, and the count of updates; the model's own file has the mean."""
        raw = [tensor.detach() for tensor in self._live]
        return {"updates": self._updates, "raw": raw}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state, once the model has loaded the averaged weights."""
        self._updates = state["updates"]
        for mean, live, raw in zip(self._mean, self._live, state["raw"], strict=True):
            mean.copy_(live)
            live.copy_(raw)
