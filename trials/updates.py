"""What becomes of the gradients at the end of a step: unscaled, clipped and applied; then the weights are averaged."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from trials import optimizers
from trials.averaging import Average
from trials.precision import Precision
from trials.settings import Settings


class Updates:
    """The optimizer with all that surrounds it.

    Attributes:
        skipped_steps: Steps without effect, because loss scaling had made a gradient infinite.
        skipped_samples: The samples of those steps.

    Args:
        model: On the device it trains on.
        settings: The optimizer, its learning rates, clipping and averaging.
        precision: Its scaler, enabled for fp16 alone, decides which steps are skipped.
        device: Where the model is.
    """

    def __init__(self, model: nn.Module, settings: Settings, precision: Precision, device: torch.device) -> None:
        self._settings, self._scaler = settings, precision.scaler
        self._optimizer = optimizers.build(model, settings, device)
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._average = None if settings.ema is None else Average(model, settings.ema)
        self.skipped_steps = 0
        self.skipped_samples = 0

    def begin(self) -> None:
        """Forget the gradients of the step before."""
        self._optimizer.zero_grad(set_to_none=True)

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of a share of the batch's loss."""
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def apply(self, rate: float, samples: int) -> torch.Tensor:
        """Apply the gradients of `samples` samples with the learning rate `rate`; their norm before clipping, left on
        the device."""
        self._scaler.unscale_(self._optimizer)
        norm = self._clip()
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group[optimizers.FACTOR]
        # The scaler says only by its scale that a step was skipped, fused optimizers skip it in their kernel. Reading
        # the scale waits for the device, in fp16 alone: a scaler that does nothing answers 1.
        scale = self._scaler.get_scale()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        if self._scaler.get_scale() < scale:
            self.skipped_steps += 1
            self.skipped_samples += samples
        elif self._average is not None:
            self._average.update()
        return norm

    def _clip(self) -> torch.Tensor:
        """Limit the gradients by their norm or by value; their norm before."""
        if (most := self._settings.max_grad_norm) is not None:
            return torch.nn.utils.clip_grad_norm_(self._parameters, most)
        norm = torch.nn.utils.get_total_norm([p.grad for p in self._parameters if p.grad is not None])
        if (most := self._settings.max_grad_value) is not None:
            torch.nn.utils.clip_grad_value_(self._parameters, most)
        return norm

    def averaged(self) -> AbstractContextManager[None]:
        """Within it the model has the weights to evaluate and to save: their running mean, where one is kept."""
        return nullcontext() if self._average is None else self._average.in_place()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the weights that `averaged` shows."""
        return {
            "optimizer": self._optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "average": None if self._average is None else self._average.state_dict(),
            "skipped": [self.skipped_steps, self.skipped_samples],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, once the model's saved weights are read."""
        self._optimizer.load_state_dict(state["optimizer"])
        if self._scaler.is_enabled():
            self._scaler.load_state_dict(state["scaler"])
        if self._average is not None:
            self._average.load_state_dict(state["average"])
        self.skipped_steps, self.skipped_samples = state["skipped"]

    def close(self) -> None:
        """Release the gradients and the optimizer's state."""
        self.begin()
        self._optimizer.state.clear()
        self._parameters.clear()
        self._average = None
