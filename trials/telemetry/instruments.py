"""Everything that a run measures about itself, behind one interface: its steps, its course, its
GPU, its memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from trials.contract import Finding
from trials.devices import memory
from trials.optim.precision import Precision
from trials.telemetry import findings
from trials.telemetry.course import Trace
from trials.telemetry.gpu import Gpu
from trials.telemetry.steps import StepLog, TakenStep

METRICS = (
    "train_loss",
    "samples_per_second",
    "tokens_per_second",
    "padding_ratio",
    "grad_norm",
    "learning_rate",
    "peak_memory_bytes",
    "skipped_steps",
    "micro_batch",
)
"""What a run reports beside its task's own metrics."""


class Telemetry:
    """What one run measures about itself. Begins to measure the peak of the device's memory.

    Args:
        precision: The run's arithmetic, and its device.
        total: Adds a tensor of losses up over all ranks, in place.
    """

    def __init__(self, precision: Precision, total: Callable[[torch.Tensor], torch.Tensor]) -> None:
        device, trace = precision.device, Trace()
        self._device = device
        self._trace = trace
        self._steps = StepLog(precision.scales, trace, total)
        self.gpu = Gpu(device, precision.name)
        memory.start_peak(device)

    # ------------------------------------------------------------------------- while it trains

    def waiting(self) -> AbstractContextManager[None]:
        """Around the making of a batch: training stops meanwhile."""
        return self._trace.waiting()

    def step(self, step: TakenStep) -> None:
        """Take in an optimizer step, without waiting for the device."""
        self._steps.add(step)

    def count(self, tokens: int, cells: int) -> None:
        """Take in the tokens of a batch, and its cells (tokens and padding)."""
        self._steps.count(tokens, cells)

    def settle(self) -> None:
        """Wait for the device, and read the losses and gradient norms of the steps so far.

        Raises:
            Diverged: A loss was not finite, or a gradient that no loss scaler skips.
        """
        self._steps.settle()

    def look(self) -> None:
        """Settle, and note the memory in use and the GPU's utilisation.

        Raises:
            Diverged: As for `settle`.
        """
        self.settle()
        in_use = memory.in_use_bytes(self._device)
        self._trace.memory(in_use)
        self.gpu.sample()

    # ---------------------------------------------------------------------------- at a report

    def read(self, seconds: float) -> dict[str, float]:
        """The metrics of the steps since the last reading; begins again.

        Args:
            seconds: Training time of the run so far.
        """
        return self._steps.read(seconds)

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        """Note a report on the run's course."""
        self._trace.report(step, metrics)

    def peak_memory_bytes(self) -> float:
        """The most memory that was in use, as a metric."""
        return float(memory.peak_bytes(self._device))

    def findings(self, seconds: float) -> tuple[Finding, ...]:
        """What the run's course shows of its health.

        Args:
            seconds: Training time of the run so far.
        """
        course = self._trace.course(seconds)
        return findings.diagnose(course)

    # -------------------------------------------------------------------------- in checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to continue."""
        return {"meter": self._steps.state_dict(), "trace": self._trace.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, which may have other keys."""
        self._steps.load_state_dict(state["meter"])
        self._trace.load_state_dict(state["trace"])
