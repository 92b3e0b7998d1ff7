"""The reports of a training function or a command: health checks and the best checkpoint.

A function reports less than a built-in task, so only the checks of numbers in all of its reports
are made. They know its losses by the names `train_loss` and one of `VALIDATION_LOSSES`.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trials.checkpoints.checkpoints import Checkpoints
from trials.contract import Finding, Setup
from trials.loop.telemetry.findings import beyond_budget, diagnose, divergence, overfitting, plateau
from trials.loop.telemetry.history import Trace

TRAIN_LOSS = "train_loss"
VALIDATION_LOSSES = ("loss", "validation_loss", "val_loss", "eval_loss")
"""Names of the loss on validation data; the first that is reported counts."""


class ReportHistory:
    """The reports of all attempts of a trial, continued from the state in a checkpoint, if any.
    `trained_to`: the resource that it has trained to, where that is not its last report's."""

    def __init__(
        self, setup: Setup, checkpoints: Checkpoints, state: Mapping[str, Any] | None
    ) -> None:
        self._goal, self._checkpoints = setup.goal, checkpoints
        self._budget = setup.budget
        self.trained_to: float | None = None
        self._trace = Trace()
        self._count = 0
        self._always: frozenset[str] = frozenset({TRAIN_LOSS, *VALIDATION_LOSSES})
        self._best: float | None = None
        if state is not None:
            self._best = checkpoints.best_value()
            self._trace.load_state_dict(state["trace"])
            self._count = state["count"]
            self._always = frozenset(state["always"])

    def note(self, metrics: Mapping[str, float], saved: Path | str | None) -> None:
        self._count += 1
        self._always &= frozenset(metrics)
        train_loss = metrics.get(TRAIN_LOSS, 0.0)
        losses = [metrics[name] for name in VALIDATION_LOSSES if name in self._always]
        loss = losses[0] if losses else 0.0
        self._trace.step(train_loss)
        self._trace.report(self._count, train_loss, loss)
        if saved is not None:
            self.mark_best(metrics, saved)

    def mark_best(self, metrics: Mapping[str, float], saved: Path | str) -> None:
        goal = self._goal
        value = None if goal is None else metrics.get(goal.metric)
        if goal is None or value is None or not math.isfinite(value):
            return
        best = self._best
        if best is None or (value > best if goal.maximize else value < best):
            self._best = value
            self._checkpoints.mark_best(saved, value)

    def findings(self) -> tuple[Finding, ...]:
        history = self._trace.history(counted="report")
        checks = []
        measured = not self._always.isdisjoint(VALIDATION_LOSSES)
        if TRAIN_LOSS in self._always:
            checks.append(divergence)
            if measured:
                checks.append(overfitting)
        if measured:
            checks.append(plateau)
        found = diagnose(history, checks)
        if self.trained_to is not None and self.trained_to > self._budget.total:
            return (beyond_budget(self.trained_to, self._budget), *found)
        return found

    def state_dict(self) -> dict[str, Any]:
        """Plain values, for a checkpoint, without the report that follows it."""
        return {
            "trace": self._trace.state_dict(),
            "count": self._count,
            "always": sorted(self._always),
        }
