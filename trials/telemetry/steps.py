"""What the optimizer steps since the last report amount to: loss, gradient norm, throughput,
padding.

Losses and gradient norms are tensors on the device. Reading one (`.item()`) makes the CPU wait for
the device, so they are kept as they are and read together, in one transfer, every few steps:
`settle`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from trials.contract import Diverged
from trials.telemetry.course import Trace

MOST_SKIPS = 20
"""Scaled fp16 steps skipped in a row after which training has diverged: each one halves the scale,
from 65536."""

_SAVED = (
    "_skips",
    "_grad_norm",
    "_rate",
    "_since",
    "_loss_sum",
    "_samples",
    "_weight",
    "_tokens",
    "_cells",
)
"""The attributes of a `StepLog` that a checkpoint holds, under these names."""


@dataclass(frozen=True)
class TakenStep:
    """One optimizer step.

    Args:
        number: Of the step, from 1.
        rate: The learning rate.
        samples: In its batch.
        weight: Targets in its batch.
        loss: This rank's share of the mean loss of a target: a scalar, still on the device.
        norm: The gradient norm before clipping: a scalar, still on the device.
    """

    number: int
    rate: float
    samples: int
    weight: float
    loss: torch.Tensor
    norm: torch.Tensor


class StepLog:
    """Sums over the steps since the last report, and the watch for values that are not finite.

    Args:
        may_skip: Whether a gradient that is not finite means a step that the loss scaler skips,
            and not a failure.
        trace: Takes in every batch and step.
        total: Adds a tensor of losses up over all ranks, in place.
    """

    def __init__(
        self, may_skip: bool, trace: Trace, total: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        self._may_skip = may_skip
        self._trace = trace
        self._total = total
        self._pending: list[TakenStep] = []
        self._skips = 0
        self._grad_norm: float | None = None
        self._rate = 0.0
        self._restart(0.0)

    def _restart(self, seconds: float) -> None:
        self._since = seconds
        self._loss_sum = 0.0
        self._samples = 0
        self._weight = 0.0
        self._tokens = 0
        self._cells = 0

    def count(self, tokens: int, cells: int) -> None:
        """Take in the tokens of a batch, and its cells (tokens and padding)."""
        self._tokens += tokens
        self._cells += cells
        self._trace.count(tokens, cells)

    def add(self, step: TakenStep) -> None:
        """Take in an optimizer step, without waiting for the device."""
        self._pending.append(step)

    def settle(self) -> None:
        """Read what is pending from the device.

        Raises:
            Diverged: A loss was not finite, or a gradient that no loss scaler skips.
        """
        if not self._pending:
            return
        steps, self._pending = self._pending, []
        own = torch.stack([step.loss.float() for step in steps])
        losses = self._total(own)
        norms = torch.stack([step.norm.float() for step in steps])
        both = torch.stack([losses, norms])
        # One transfer for all of them: this is where the CPU waits for the device.
        values = both.tolist()
        for step, loss, norm in zip(steps, *values, strict=True):
            self._take(step, loss, norm)

    def _take(self, step: TakenStep, loss: float, norm: float) -> None:
        self._trace.step(loss, norm)
        if not math.isfinite(loss):
            raise Diverged(self._story("loss", loss, step))
        self._note_norm(step, norm)
        self._loss_sum += loss * step.weight
        self._weight += step.weight
        self._samples += step.samples
        self._rate = step.rate

    def _note_norm(self, step: TakenStep, norm: float) -> None:
        """Take in the gradient norm of a step, or count the step as skipped where it is not finite.

        Raises:
            Diverged: It is not finite, and no loss scaler skips the step; or too many were skipped
                in a row.
        """
        if math.isfinite(norm):
            self._skips = 0
            self._grad_norm = norm
            return
        self._skips += 1
        if not self._may_skip or self._skips >= MOST_SKIPS:
            raise Diverged(self._story("gradient norm", norm, step))

    def _story(self, what: str, value: float, step: TakenStep) -> str:
        before = "none"
        if self._grad_norm is not None:
            before = f"{self._grad_norm:.3g}"
        facts = f"learning rate {step.rate:.3g}, last gradient norm {before}"
        return f"{what} became {value} at step {step.number} ({facts}); try a lower learning rate"

    def read(self, seconds: float) -> dict[str, float]:
        """The metrics since the last reading; begins again.

        Args:
            seconds: Training time of the run so far.
        """
        assert not self._pending, "settle before reading"
        passed = max(seconds - self._since, 1e-9)
        weight = max(self._weight, 1.0)
        cells = max(self._cells, 1)
        metrics = {
            "train_loss": self._loss_sum / weight,
            "samples_per_second": self._samples / passed,
            "tokens_per_second": self._tokens / passed,
            "padding_ratio": 1.0 - self._tokens / cells,
            "grad_norm": self._grad_norm or 0.0,
            "learning_rate": self._rate,
        }
        self._restart(seconds)
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to continue."""
        assert not self._pending, "settle before saving"
        return {name: getattr(self, name) for name in _SAVED}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        for name in _SAVED:
            setattr(self, name, state[name])
