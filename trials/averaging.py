"""A running mean of the weights (EMA): evaluated and saved in place of the weights that train."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


class Average:
    """An exponential moving average over a model's trainable parameters and floating-point buffers.

    Early on the decay is smaller, (1 + n) / (10 + n) after n updates, so that a short trial's mean is not one of its
    first, random weights (as TensorFlow's ExponentialMovingAverage does).

    Args:
        model: The model; the average starts from its weights.
        decay: The share of the mean that each update keeps, in (0, 1).
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._live: list[torch.Tensor] = [*trained, *(b for b in model.buffers() if b.is_floating_point())]
        self._mean = [tensor.detach().clone() for tensor in self._live]
        self._updates = 0

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights of this moment."""
        self._updates += 1
        decay = min(self._decay, (1 + self._updates) / (10 + self._updates))
        torch._foreach_lerp_(self._mean, [tensor.detach() for tensor in self._live], 1.0 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it the model has the averaged weights. Nothing is copied: the storages change places."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for number, (live, mean) in enumerate(zip(self._live, self._mean, strict=True)):
            self._mean[number], live.data = live.data, mean

    def state_dict(self) -> dict[str, Any]:
        """The weights that train, and the count of updates. The mean itself is what the model's own file holds."""
        return {"updates": self._updates, "raw": [tensor.detach() for tensor in self._live]}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, in a model into which the averaged weights were read."""
        self._updates = state["updates"]
        for mean, live, raw in zip(self._mean, self._live, state["raw"], strict=True):
            mean.copy_(live)
            live.copy_(raw)
