"""What a run measures about itself between two reports: losses, gradient norms, throughput, padding, memory.

Losses and gradient norms are tensors on the device. Reading one (`.item()`) makes the CPU wait for the device, so they
are kept as they are and read together, in one transfer, every few steps: `settle`.
"""

from __future__ import annotations

import math
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trials.contract import Diverged
from trials.trace import Trace

MOST_SKIPS = 20
"""Scaled fp16 steps skipped in a row after which training has diverged: each halves the scale, from 65536."""


@dataclass(frozen=True)
class _Step:
    """One optimizer step, its loss and gradient norm still on the device."""

    number: int
    rate: float
    samples: int
    weight: float
    loss: torch.Tensor
    norm: torch.Tensor


class Meter:
    """Sums since the last report, and the watch for values that are not finite.

    Args:
        may_skip: Whether a gradient that is not finite is a step skipped by the loss scaler, and no failure.
        trace: Is told of every batch and step.
    """

    def __init__(self, may_skip: bool, trace: Trace) -> None:
        self._may_skip = may_skip
        self._trace = trace
        self._pending: list[_Step] = []
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
        """Take in a micro-batch: its tokens, and its cells (tokens and padding)."""
        self._tokens += tokens
        self._cells += cells
        self._trace.count(tokens, cells)

    def step(
        self, number: int, rate: float, samples: int, weight: float, loss: torch.Tensor, norm: torch.Tensor
    ) -> None:
        """Take in an optimizer step: its number, learning rate, samples, targets, mean loss and gradient norm."""
        self._pending.append(_Step(number, rate, samples, weight, loss, norm))

    def settle(self) -> None:
        """Read what is pending from the device.

        Raises:
            Diverged: A loss was not finite, or a gradient that no loss scaler skips.
        """
        if not self._pending:
            return
        steps, self._pending = self._pending, []
        values = torch.stack([t for s in steps for t in (s.loss.float(), s.norm.float())]).tolist()
        for step, loss, norm in zip(steps, values[::2], values[1::2], strict=True):
            self._take(step, loss, norm)

    def _take(self, step: _Step, loss: float, norm: float) -> None:
        self._trace.step(loss, norm)
        if not math.isfinite(loss):
            raise Diverged(self._story("loss", loss, step))
        self._skips = 0 if math.isfinite(norm) else self._skips + 1
        if self._skips and (not self._may_skip or self._skips >= MOST_SKIPS):
            raise Diverged(self._story("gradient norm", norm, step))
        self._loss_sum += loss * step.weight
        self._weight += step.weight
        self._samples += step.samples
        self._rate = step.rate
        self._grad_norm = norm if math.isfinite(norm) else self._grad_norm

    def _story(self, what: str, value: float, step: _Step) -> str:
        before = "none" if self._grad_norm is None else f"{self._grad_norm:.3g}"
        return (
            f"{what} became {value} at step {step.number} "
            f"(learning rate {step.rate:.3g}, last gradient norm {before}); try a lower learning rate"
        )

    def read(self, seconds: float) -> dict[str, float]:
        """The metrics since the last reading; begins anew.

        Args:
            seconds: Training time of the run so far.
        """
        assert not self._pending, "settle before reading"
        passed = max(seconds - self._since, 1e-9)
        metrics = {
            "train_loss": self._loss_sum / max(self._weight, 1.0),
            "samples_per_second": self._samples / passed,
            "tokens_per_second": self._tokens / passed,
            "padding_ratio": 1.0 - self._tokens / max(self._cells, 1),
            "grad_norm": self._grad_norm or 0.0,
            "learning_rate": self._rate,
        }
        self._restart(seconds)
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to go on."""
        assert not self._pending, "settle before saving"
        return {name: value for name, value in vars(self).items() if name not in ("_pending", "_may_skip", "_trace")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        vars(self).update(state)


METRICS = (
    "train_loss", "samples_per_second", "tokens_per_second", "padding_ratio", "grad_norm", "learning_rate",
    "peak_memory_bytes", "skipped_steps", "micro_batch",
)  # fmt: skip
"""What a run reports beside its task's own metrics."""


def start_memory(device: torch.device) -> None:
    """Begin a new peak of the device's memory."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def memory_in_use_bytes(device: torch.device) -> int | None:
    """The memory in use now: allocated on a GPU; on the CPU, by the whole process, where Linux tells it."""
    if device.type == "cuda":
        return int(torch.cuda.memory_allocated(device))
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return None


def peak_memory_bytes(device: torch.device) -> int:
    """The most memory that was in use: allocated on a GPU since `start_memory`; on the CPU, by the whole process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    in_bytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * in_bytes
