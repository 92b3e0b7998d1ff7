"""What the reports of a training function tell: how healthy its course is, and which checkpoint is the best.

A function says less of itself than a built-in task: only checks whose numbers it always reported are made. They know
its losses by the names `train_loss` and one of `VALIDATION_LOSSES`; its speed is told from the reports themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trials import diagnose
from trials.checkpoint import Checkpoints
from trials.contract import Finding, Goal, Setup
from trials.trace import Trace

TRAIN_LOSS = "train_loss"
VALIDATION_LOSSES = ("loss", "validation_loss", "val_loss")
"""Names of the loss on validation data; the first that is reported is taken."""


class Course:
    """The reports of a trial, over all its attempts.

    Args:
        setup: The goal, the unit of the budget, and the checkpoint that is continued from.
        checkpoints: Of the trial.
        state: Of the course before, from that checkpoint; None for a trial that starts afresh.
    """

    def __init__(self, setup: Setup, checkpoints: Checkpoints, state: Mapping[str, Any] | None) -> None:
        self._goal, self._unit, self._checkpoints = setup.goal, setup.budget.unit.value, checkpoints
        self._trace = Trace()
        self._count, self._reached, self._elapsed = 0, 0.0, 0.0
        self._always: frozenset[str] = frozenset({TRAIN_LOSS, *VALIDATION_LOSSES})
        if state is not None:
            self._trace.load_state_dict(state["trace"])
            self._count, self._reached, self._elapsed = state["count"], state["reached"], state["elapsed"]
            self._always = frozenset(state["always"])
        self._best = None if setup.resume_from is None else checkpoints.best_value(setup.resume_from)

    def note(self, resource: float, metrics: Mapping[str, float], elapsed: float, saved: Path | str | None) -> None:
        """Take in a report.

        Args:
            resource: How far the trial has trained.
            metrics: What it reports.
            elapsed: Seconds it has trained, over all its attempts.
            saved: The checkpoint that belongs to the report; None where there is none.
        """
        self._count += 1
        self._always &= frozenset(metrics)
        loss = next((metrics[name] for name in VALIDATION_LOSSES if name in self._always), 0.0)
        train_loss = metrics.get(TRAIN_LOSS, 0.0)
        speed = (resource - self._reached) / max(elapsed - self._elapsed, 1e-9)
        self._trace.step(train_loss, 0.0)
        self._trace.report(self._count, {"train_loss": train_loss, "loss": loss, "samples_per_second": speed})
        self._reached, self._elapsed = resource, elapsed
        value = None if self._goal is None else metrics.get(self._goal.metric)
        if saved is not None and value is not None and _better(self._goal, value, self._best):
            self._best = value
            self._checkpoints.mark_best(saved, value, resource)

    def findings(self) -> tuple[Finding, ...]:
        """What the course shows, the most severe first."""
        records = replace(self._trace.records(self._elapsed), counted="report", unit=self._unit)
        checks = [diagnose.throughput_drop]
        measured = any(name in self._always for name in VALIDATION_LOSSES)
        if TRAIN_LOSS in self._always:
            checks += [diagnose.divergence, *([diagnose.overfitting] if measured else [])]
        if measured:
            checks += [diagnose.plateau]
        return diagnose.diagnose(records, checks)

    def state_dict(self) -> dict[str, Any]:
        """Plain values, for a checkpoint. The report that the checkpoint belongs to is yet to come: a trial that
        continues from it has one report less."""
        return {
            "trace": self._trace.state_dict(),
            "count": self._count,
            "reached": self._reached,
            "elapsed": self._elapsed,
            "always": sorted(self._always),
        }


def _better(goal: Goal | None, value: float, best: float | None) -> bool:
    if goal is None or not math.isfinite(value):
        return False
    return best is None or (value > best if goal.maximize else value < best)
