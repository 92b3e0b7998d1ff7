"""An optimizer step after the gradients: unscale, clip, apply, and average the weights."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from trials.devices.precision import Precision
from trials.loop.optim import optimizers
from trials.loop.optim.averaging import Average
from trials.settings import Settings


class Updates:
    """The optimizer with all that surrounds it.

    Attributes:
        skipped: The steps that loss scaling has skipped so far.

    Args:
        model: On the device of `precision`.
        settings: The optimizer, its learning rates, clipping and averaging.
        precision: Its scaler, enabled for fp16 alone, decides which steps are skipped.
    """

    def __init__(self, model: nn.Module, settings: Settings, precision: Precision) -> None:
        self._max_grad_norm = settings.max_grad_norm
        self._scaler = precision.scaler
        self._optimizer = optimizers.build(model, settings, precision.device)
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._average: Average | None = None
        if settings.ema is not None:
            self._average = Average(model, settings.ema)
        self.skipped = 0

    def zero_grad(self) -> None:
        """Forget the gradients of the step before."""
        self._optimizer.zero_grad(set_to_none=True)

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of a share of the batch's loss."""
        scaled = self._scaler.scale(loss)
        scaled.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def unscale(self) -> None:
        """Divide the gradients by the scale of the loss."""
        self._scaler.unscale_(self._optimizer)

    def clip(self) -> torch.Tensor:
        """Limit the gradients by their norm.

        Returns: Their norm before, left on the device.
        """
        parameters, most = self._parameters, self._max_grad_norm
        if most is not None:
            return nn.utils.clip_grad_norm_(parameters, most)
        gradients = [p.grad for p in parameters if p.grad is not None]
        return nn.utils.get_total_norm(gradients)

    def step(self, rate: float) -> None:
        """Apply the gradients with the learning rate `rate`, and average the weights."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group[optimizers.FACTOR]
        # Only the scale shows that a step was skipped: fused optimizers skip it in their kernel.
        # Reading the scale waits for the device, in fp16 alone: a disabled scaler answers 1.
        scaler = self._scaler
        scale = scaler.get_scale()
        scaler.step(self._optimizer)
        scaler.update()
        if scaler.get_scale() < scale:
            self.skipped += 1
        elif self._average is not None:
            self._average.update()

    def averaged(self) -> AbstractContextManager[None]:
        """The context in which the model has the weights to evaluate and to save."""
        return nullcontext() if self._average is None else self._average.in_place()

    def buffers(self) -> list[torch.Tensor]:
        """The running means of the model's buffers; empty if no mean is kept."""
        return [] if self._average is None else self._average.buffers()

    def state_dict(self) -> dict[str, Any]:
        """The state without the weights of `averaged`."""
        average = None if self._average is None else self._average.state_dict()
        return {
            "optimizer": self._optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "average": average,
            "skipped": self.skipped,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state, once the model's saved weights are read."""
        self._optimizer.load_state_dict(state["optimizer"])
        if self._average is not None:
            self._average.load_state_dict(state["average"])
        of_scaler = state["scaler"]
        # The scaler's state is empty after steps in another arithmetic than fp16.
        if self._scaler.is_enabled() and of_scaler:
            self._scaler.load_state_dict(of_scaler)
        self.skipped = state["skipped"]

    def close(self) -> None:
        """Release the gradients and the optimizer's state."""
        self.zero_grad()
        self._optimizer.state.clear()
        self._parameters.clear()
        self._average = None
