"""The instruments of a run: its steps, its history, its GPU, its memory.

Losses and gradient norms are tensors on the device. Reading one (`.item()`) makes the CPU wait for
the device, so `settle` reads several steps in one transfer.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch

from trials.contract import Diverged, Finding
from trials.devices import memory
from trials.devices.precision import Precision
from trials.loop.telemetry import findings
from trials.loop.telemetry.history import Trace

MOST_SKIPS = 20
"""Skipped fp16 steps in a row that mean divergence: each halves the loss scale, from 65536."""
_SAVED = (
    "_skips", "_grad_norm", "_rate", "_since", "_loss_sum", "_samples", "_weight", "_tokens",
    "_cells",
)  # fmt: skip
"""The attributes of a `Telemetry` that a checkpoint holds, under these names."""


@dataclass(frozen=True)
class TakenStep:
    """One optimizer step."""

    number: int
    rate: float
    samples: int
    weight: float  # targets in its batch
    loss: torch.Tensor
    """This rank's share of the mean loss of a target: a scalar, still on the device."""
    norm: torch.Tensor  # the gradient norm before clipping: a scalar, still on the device


class Telemetry:
    """Sums over the steps since the last report, and the run's history. `total`: adds a tensor of
    losses up over all ranks, in place."""

    def __init__(self, precision: Precision, total: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._may_skip = precision.scales
        self._device = precision.device
        self._total = total
        self.trace = Trace()
        self._utilization: list[float] = []
        self._pending: list[TakenStep] = []
        self._skips = 0
        self._grad_norm: float | None = None
        self._rate = 0.0
        self._restart(0.0)
        memory.start_peak(precision.device)

    def _restart(self, seconds: float) -> None:
        self._since = seconds
        self._loss_sum = self._weight = 0.0
        self._samples = self._tokens = self._cells = 0

    def step(self, step: TakenStep) -> None:
        self._pending.append(step)

    def count(self, tokens: int, cells: int) -> None:
        """Add the tokens of a batch, and its cells (tokens and padding)."""
        self._tokens += tokens
        self._cells += cells

    def settle(self) -> None:
        """Wait for the device, and read the losses and gradient norms of the steps so far. Raises
        Diverged if a loss was not finite, or a gradient that no loss scaler skips."""
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
        self.trace.step(loss)
        if not math.isfinite(loss):
            raise self._diverged("loss", loss, step)
        if math.isfinite(norm):
            self._skips = 0
            self._grad_norm = norm
        else:
            self._skips += 1
            if not self._may_skip or self._skips >= MOST_SKIPS:
                raise self._diverged("gradient norm", norm, step)
        self._loss_sum += loss * step.weight
        self._weight += step.weight
        self._samples += step.samples
        self._rate = step.rate

    def _diverged(self, what: str, value: float, step: TakenStep) -> Diverged:
        before = "none" if self._grad_norm is None else f"{self._grad_norm:.3g}"
        facts = f"learning rate {step.rate:.3g}, last gradient norm {before}"
        at = f"{what} became {value} at step {step.number}"
        return Diverged(f"{at} ({facts}); try a lower learning rate")

    def check(self) -> None:
        self.settle()
        self._utilization += _utilization(self._device)

    def read(self, seconds: float) -> dict[str, float]:
        """The metrics of the settled steps since the last reading, and begin again. `seconds`:
        training time of the run so far."""
        assert not self._pending, "settle before reading"
        passed = max(seconds - self._since, 1e-9)
        weight = max(self._weight, 1.0)
        metrics = {
            "train_loss": self._loss_sum / weight,
            "samples_per_second": self._samples / passed,
            "grad_norm": self._grad_norm or 0.0,
            "learning_rate": self._rate,
        }
        if self._cells:
            metrics["tokens_per_second"] = self._tokens / passed
            metrics["padding_ratio"] = 1.0 - self._tokens / self._cells
        self._restart(seconds)
        utilization = self._utilization + _utilization(self._device)
        self._utilization = []
        if utilization:
            metrics["gpu_utilization"] = fmean(utilization)
        return metrics

    def peak_memory_bytes(self) -> float:
        return float(memory.peak_bytes(self._device))

    def findings(self) -> tuple[Finding, ...]:
        return findings.diagnose(self.trace.history())

    def state_dict(self) -> dict[str, Any]:
        assert not self._pending, "settle before saving"
        meter = {name: getattr(self, name) for name in _SAVED}
        return {"meter": meter, "trace": self.trace.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in _SAVED:
            setattr(self, name, state["meter"][name])
        self.trace.load_state_dict(state["trace"])


def _utilization(device: torch.device) -> list[float]:
    """The share of the last moments in which a GPU had work, if `nvidia-ml-py` reports it."""
    if device.type != "cuda":
        return []
    try:
        return [torch.cuda.utilization(device) / 100]
    except Exception:  # noqa: BLE001 - each driver has errors of its own, and none ends a training
        return []
