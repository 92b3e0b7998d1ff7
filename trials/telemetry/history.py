"""The history of a run, compactly: the records that `trials.telemetry.findings` reads.

The history of a run of a million steps is no larger than that of a run of a hundred: each series
has at most `MOST` points, and a full one merges its neighbours. It travels in checkpoints, so that
a trial's health covers all its attempts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

MOST = 256
"""Points a series keeps. A spike of one step stays visible, because gradient norms merge to their
maximum."""


class Series:
    """Numbers in order, in at most `MOST` points.

    Attributes:
        points: The merged numbers.
        every: Numbers in a point.
    """

    def __init__(self, merge: Callable[[Sequence[float]], float]) -> None:
        self._merge = merge
        self.points: list[float] = []
        self.every = 1
        self._open: list[float] = []

    def add(self, value: float) -> None:
        """Add the next number. What does not fill a point yet is not in `points`."""
        self._open.append(value)
        if len(self._open) < self.every:
            return
        point = self._merge(self._open)
        self.points.append(point)
        self._open = []
        if len(self.points) == MOST:
            self._merge_neighbours()

    def _merge_neighbours(self) -> None:
        points = []
        for start in range(0, MOST, 2):
            pair = self.points[start : start + 2]
            points.append(self._merge(pair))
        self.points = points
        self.every *= 2

    def state_dict(self) -> dict[str, Any]:
        """The state, for `load_state_dict`."""
        return {"points": list(self.points), "every": self.every, "open": list(self._open)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.points = list(state["points"])
        self.every = state["every"]
        self._open = list(state["open"])


@dataclass(frozen=True)
class Losses:
    """The losses of one report: of training since the report before, and of validation."""

    step: int
    train_loss: float
    loss: float


@dataclass(frozen=True)
class RunHistory:
    """A run's history, as plain values.

    Args:
        losses: The training loss, in order; one point is the mean of `every` steps.
        norms: The gradient norm before clipping, in order; one point is the greatest of `every`
            steps. Steps that fp16's loss scaling skipped are not among them.
        every: Steps in a point.
        reports: The losses of the reports.
        steps: Optimizer steps taken.
        waited_s: Seconds spent waiting for batches.
        trained_s: Seconds trained, waiting included.
        tokens: Tokens trained on.
        cells: Tokens and padding.
        counted: The word for what `step` counts.
    """

    losses: tuple[float, ...] = ()
    norms: tuple[float, ...] = ()
    every: int = 1
    reports: tuple[Losses, ...] = ()
    steps: int = 0
    waited_s: float = 0.0
    trained_s: float = 0.0
    tokens: int = 0
    cells: int = 0
    counted: str = "step"


class Trace:
    """Collects the history of a run.

    Args:
        clock: Seconds, for the time spent waiting for batches; only differences count.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._series = {"losses": Series(fmean), "norms": Series(max)}
        self._reports: list[Losses] = []
        self._sums: dict[str, Any] = {"steps": 0, "waited_s": 0.0, "tokens": 0, "cells": 0}

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The context of making a batch, or of waiting for one: training stops meanwhile."""
        began = self._clock()
        try:
            yield
        finally:
            self._sums["waited_s"] += self._clock() - began

    def count(self, tokens: int, cells: int) -> None:
        """Add the tokens of a batch, and its cells (tokens and padding)."""
        self._sums["tokens"] += tokens
        self._sums["cells"] += cells

    def step(self, loss: float, norm: float) -> None:
        """Add an optimizer step."""
        self._sums["steps"] += 1
        self._series["losses"].add(loss)
        if math.isfinite(norm):
            self._series["norms"].add(norm)

    def report(self, step: int, train_loss: float, loss: float) -> None:
        """Add a report."""
        self._reports.append(Losses(step, train_loss, loss))
        if len(self._reports) > MOST:
            del self._reports[1:-1:2]

    def history(self, trained_s: float, counted: str = "step") -> RunHistory:
        """The history so far.

        Args:
            trained_s: Seconds the run has trained.
            counted: The word for what the `step` of a report counts.
        """
        losses, norms = self._series["losses"], self._series["norms"]
        return RunHistory(
            losses=tuple(losses.points),
            norms=tuple(norms.points),
            every=losses.every,
            reports=tuple(self._reports),
            trained_s=trained_s,
            counted=counted,
            **self._sums,
        )

    def state_dict(self) -> dict[str, Any]:
        """The state, for `load_state_dict`."""
        series = {name: series.state_dict() for name, series in self._series.items()}
        reports = [asdict(each) for each in self._reports]
        return {"series": series, "reports": reports, "sums": dict(self._sums)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, which may have other keys."""
        for name, series in self._series.items():
            series.load_state_dict(state["series"][name])
        self._reports = []
        for each in state["reports"]:
            self._reports.append(Losses(each["step"], each["train_loss"], each["loss"]))
        self._sums = {name: state["sums"][name] for name in self._sums}
