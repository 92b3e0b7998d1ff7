"""The history of a run for `trials.loop.telemetry.findings`, however long the run is.

A series has at most `MOST` points, and a full one merges its neighbours. The history is saved in
checkpoints, so that a trial's health covers all its attempts.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

MOST = 256  # the points of a series


class Series:
    """Numbers in order, in at most `MOST` points.

    Attributes:
        points: Means of numbers that follow each other.
        every: Numbers in a point.
    """

    def __init__(self) -> None:
        self.points: list[float] = []
        self.every = 1
        self._open: list[float] = []

    def add(self, value: float) -> None:
        """Add the next number; `points` changes once a point is full."""
        self._open.append(value)
        if len(self._open) < self.every:
            return
        self.points.append(fmean(self._open))
        self._open = []
        if len(self.points) == MOST:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [fmean(pair) for pair in pairs]
            self.every *= 2

    def state_dict(self) -> dict[str, Any]:
        return {"points": list(self.points), "every": self.every, "open": list(self._open)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.points = list(state["points"])
        self.every = state["every"]
        self._open = list(state["open"])


@dataclass(frozen=True)
class Losses:
    """The losses of a report: of training since the report before, and of validation."""

    step: int
    train_loss: float
    loss: float


@dataclass(frozen=True)
class RunHistory:
    """A run's history, as plain values."""

    losses: tuple[float, ...] = ()
    """The training loss, in order; one point is the mean of `every` steps."""
    every: int = 1
    reports: tuple[Losses, ...] = ()
    counted: str = "step"  # the word for what `step` counts


class Trace:
    """Collects the history of a run."""

    def __init__(self) -> None:
        self._losses = Series()
        self._reports: list[Losses] = []

    def step(self, loss: float) -> None:
        self._losses.add(loss)

    def report(self, step: int, train_loss: float, loss: float) -> None:
        self._reports.append(Losses(step, train_loss, loss))
        if len(self._reports) > MOST:
            del self._reports[1:-1:2]

    def history(self, counted: str = "step") -> RunHistory:
        return RunHistory(
            losses=tuple(self._losses.points),
            every=self._losses.every,
            reports=tuple(self._reports),
            counted=counted,
        )

    def state_dict(self) -> dict[str, Any]:
        return {
            "losses": self._losses.state_dict(),
            "reports": [asdict(each) for each in self._reports],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._losses.load_state_dict(state["losses"])
        self._reports = [Losses(**each) for each in state["reports"]]
