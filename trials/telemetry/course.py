"""What a run remembers of its own course, compactly: the records that `trials.telemetry.findings`
reads at its end.

The record of a run of a million steps is no larger than that of a run of a hundred: each series has
at most `MOST` points, and a full one merges its neighbours. The trace travels in checkpoints, so
that a trial's health covers all its attempts.
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
    """Numbers in order, in at most `MOST` points."""

    def __init__(self, merge: Callable[[Sequence[float]], float]) -> None:
        self._merge = merge
        self.points: list[float] = []
        self.every = 1
        """Numbers in a point."""
        self._open: list[float] = []

    def add(self, value: float) -> None:
        """Take in the next number; what does not fill a point yet is not in `points`."""
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
        """Everything that `load_state_dict` needs to continue."""
        return {"points": list(self.points), "every": self.every, "open": list(self._open)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.points = list(state["points"])
        self.every = state["every"]
        self._open = list(state["open"])


@dataclass(frozen=True)
class Reading:
    """What one report says about the run's health."""

    step: int
    train_loss: float
    loss: float
    samples_per_second: float


@dataclass(frozen=True)
class RunCourse:
    """A run's course, as plain values.

    Args:
        losses: The training loss, in order; one point is the mean of `every` steps.
        norms: The gradient norm before clipping, in order; one point is the greatest of `every`
            steps. Skipped steps are not among them.
        every: Steps in a point.
        memory_bytes: Memory in use, read every few steps.
        reports: The report history.
        steps: Optimizer steps taken, the skipped ones among them.
        skipped: Steps that the fp16 loss scaler skipped.
        waited_s: Seconds spent waiting for batches.
        trained_s: Seconds trained, waiting included.
        tokens: Tokens trained on.
        cells: Tokens and padding.
        counted: What `step` of a reading counts, in words.
        unit: What is counted a second, in words.
    """

    losses: tuple[float, ...] = ()
    norms: tuple[float, ...] = ()
    every: int = 1
    memory_bytes: tuple[float, ...] = ()
    reports: tuple[Reading, ...] = ()
    steps: int = 0
    skipped: int = 0
    waited_s: float = 0.0
    trained_s: float = 0.0
    tokens: int = 0
    cells: int = 0
    counted: str = "step"
    unit: str = "samples"


_SUMS = ("steps", "skipped", "waited_s", "tokens", "cells")
"""What a `Trace` counts over the whole run."""


class Trace:
    """Collects the course of a run.

    Args:
        clock: Seconds, for the time spent waiting for batches; only differences count.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._series = {"losses": Series(fmean), "norms": Series(max), "memory": Series(max)}
        self._reports: list[Reading] = []
        self._sums: dict[str, Any] = dict.fromkeys(_SUMS, 0)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around the making of a batch, or the waiting for one that is made ahead: training stops
        meanwhile."""
        began = self._clock()
        try:
            yield
        finally:
            self._sums["waited_s"] += self._clock() - began

    def count(self, tokens: int, cells: int) -> None:
        """Take in a micro-batch."""
        self._sums["tokens"] += tokens
        self._sums["cells"] += cells

    def step(self, loss: float, norm: float) -> None:
        """Take in an optimizer step; one whose gradient is not finite counts as skipped."""
        sums, series = self._sums, self._series
        sums["steps"] += 1
        series["losses"].add(loss)
        if math.isfinite(norm):
            series["norms"].add(norm)
        else:
            sums["skipped"] += 1

    def memory(self, in_use_bytes: int | None) -> None:
        """Take in a reading of the memory in use, where there is one."""
        if in_use_bytes is not None:
            self._series["memory"].add(float(in_use_bytes))

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take in a report of the loop."""
        reading = Reading(
            step=step,
            train_loss=metrics["train_loss"],
            loss=metrics["loss"],
            samples_per_second=metrics["samples_per_second"],
        )
        self._reports.append(reading)
        if len(self._reports) > MOST:
            del self._reports[1:-1:2]

    def course(self, trained_s: float) -> RunCourse:
        """The course so far.

        Args:
            trained_s: Seconds the run has trained.
        """
        series: dict[str, Any] = {name: tuple(each.points) for name, each in self._series.items()}
        return RunCourse(
            memory_bytes=series.pop("memory"),
            **series,
            **self._sums,
            every=self._series["losses"].every,
            reports=tuple(self._reports),
            trained_s=trained_s,
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to continue."""
        series = {name: series.state_dict() for name, series in self._series.items()}
        reports = [asdict(reading) for reading in self._reports]
        return {"series": series, "reports": reports, "sums": dict(self._sums)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        saved = state["series"]
        for name, series in self._series.items():
            series.load_state_dict(saved[name])
        self._reports = [Reading(**reading) for reading in state["reports"]]
        self._sums = dict(state["sums"])
