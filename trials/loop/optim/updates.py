"""An optimizer step after the gradients: unscale, clip, apply, and average the weights.

Where steps are captured, clipping and the optimizer are one graph; the learning rate is a tensor.
"""

import logging
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from trials.devices.graphs import Graph, NotCapturableError, Tensors, new_pool
from trials.devices.precision import Precision
from trials.foreign import line_of
from trials.loop.captured import is_captured
from trials.loop.optim import optimizers
from trials.loop.optim.averaging import Average
from trials.settings import Settings

log = logging.getLogger(__name__)


class Updates:
    """The optimizer with all that surrounds it. `precision`: its scaler, enabled for fp16 alone,
    decides which steps are skipped. `skipped`: the steps that loss scaling has skipped so far."""

    def __init__(self, model: nn.Module, settings: Settings, precision: Precision) -> None:
        device = precision.device
        capturable = settings.optimizer in optimizers.CAPTURABLE and not precision.scales
        self._is_captured = capturable and is_captured(settings, device)
        self._is_capturable = self._is_captured and device.type == "cuda"
        self._graph: Graph | None = None
        self._may_capture = self._is_captured
        self._with_gradients = 0
        self._max_grad_norm = settings.max_grad_norm
        self._scaler = precision.scaler
        self._one = torch.ones((), device=device)
        self._optimizer = optimizers.build(model, settings, device, self._is_captured)
        self._rates = [self._one.clone() for _ in self._optimizer.param_groups]
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._average: Average | None = None
        if settings.ema is not None:
            self._average = Average(model, settings.ema)
        self.skipped = 0

    def zero_grad(self, in_place: bool = False) -> None:
        """Forget the gradients of the step before. `in_place`: whether captured steps need them in
        their places. Without, the updates are not captured from now on: a parameter that a step
        does not use has no gradient."""
        if not in_place:
            self._graph, self._may_capture = None, False
        self._optimizer.zero_grad(set_to_none=not in_place)

    def scale(self) -> torch.Tensor:
        """The scale of gradients, by which the loss is multiplied: a scalar on the device."""
        scaled: torch.Tensor = self._scaler.scale(self._one)
        return scaled

    def apply(self, rate: float) -> torch.Tensor:
        """Apply the gradients with the learning rate `rate`, and average the weights. Returns the
        norm of the gradients before they were clipped, left on the device."""
        for group, tensor in zip(self._optimizer.param_groups, self._rates, strict=True):
            of_group = rate * group[optimizers.FACTOR]
            # A graph reads the rate from its tensor.
            group["lr"] = tensor.fill_(of_group) if self._is_captured else of_group
        norm, is_taken = self._captured_step() if self._is_captured else self._plain_step()
        if not is_taken:
            self.skipped += 1
        elif self._average is not None:
            self._average.update()
        return norm

    def _plain_step(self) -> tuple[torch.Tensor, bool]:
        scaler = self._scaler
        scaler.unscale_(self._optimizer)
        norm = self._clip()
        # Only the scale shows that a step was skipped: fused optimizers skip it in their kernel.
        # Reading the scale waits for the device, in fp16 alone: a disabled scaler answers 1.
        scale = scaler.get_scale()
        scaler.step(self._optimizer)
        scaler.update()
        return norm, scaler.get_scale() >= scale

    def _captured_step(self) -> tuple[torch.Tensor, bool]:
        with_gradients = sum(p.grad is not None for p in self._parameters)
        if with_gradients != self._with_gradients:
            # The step makes the optimizer's state, and loads what a capture must find loaded.
            self._graph, self._with_gradients = None, with_gradients
            return self._clipped_step()[0], True
        if self._graph is None and self._may_capture:
            try:
                self._graph = Graph(self._clipped_step, new_pool(self._one.device))
            except NotCapturableError as error:
                self._may_capture = False
                log.warning("updates are not captured, and take longer: %s", line_of(error))
        done = self._clipped_step() if self._graph is None else self._graph.replay()
        return done[0], True

    def _clipped_step(self) -> Tensors:
        norm = self._clip()
        self._optimizer.step()
        return (norm,)

    def _clip(self) -> torch.Tensor:
        parameters, most = self._parameters, self._max_grad_norm
        if most is not None:
            return nn.utils.clip_grad_norm_(parameters, most)
        gradients = [p.grad for p in parameters if p.grad is not None]
        return nn.utils.get_total_norm(gradients)

    def averaged(self) -> AbstractContextManager[None]:
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
        for group in self._optimizer.param_groups:
            if "capturable" in group:  # as this run needs it, not as the saved one did
                group["capturable"] = self._is_capturable
        if self._average is not None:
            self._average.load_state_dict(state["average"])
        of_scaler = state["scaler"]
        # The scaler's state is empty after steps in another arithmetic than fp16.
        if self._scaler.is_enabled() and of_scaler:
            self._scaler.load_state_dict(of_scaler)
        self.skipped = state["skipped"]

    def close(self, keeps_gradients: bool = False) -> None:
        """Release the optimizer's state, and the gradients unless the next run needs them."""
        self._graph = None
        if not keeps_gradients:
            self.zero_grad()
        self._optimizer.state.clear()
        self._parameters.clear()
        self._average = None
