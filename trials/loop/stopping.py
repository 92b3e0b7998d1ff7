"""The monitored metric over the reports of a run: its best value, and early stopping."""

import math
from typing import Any


class EarlyStopping:
    """The best value of the monitored metric, and how long there was none better.

    Any better value is the best so far, but only one that is better by more than `min_delta` is an
    improvement.

    Args:
        mode: `min` if smaller is better, `max` if larger is.
        patience: Reports without improvement after which it is exhausted; None for never.
        min_delta: An improvement must be larger than this.
    """

    def __init__(self, mode: str, patience: int | None, min_delta: float) -> None:
        self._sign = -1.0 if mode == "min" else 1.0
        self._patience = patience
        self._min_delta = min_delta
        self._best: float | None = None
        self._reference: float | None = None
        self._stale = 0

    @property
    def best(self) -> float | None:
        """The best value so far; None before the first."""
        return None if self._best is None else self._sign * self._best

    def note(self, value: float) -> bool:
        """Note the value of a report, and return whether it is the best so far; NaN never is."""
        score = self._sign * value
        if math.isnan(score):
            self._stale += 1
            return False
        if self._reference is None or score > self._reference + self._min_delta:
            self._reference = score
            self._stale = 0
        else:
            self._stale += 1
        if self._best is not None and score <= self._best:
            return False
        self._best = score
        return True

    def forget_best(self) -> None:
        """Let the next value be the best: the checkpoint of the best one is lost."""
        self._best = None

    @property
    def exhausted(self) -> str | None:
        """The reason to stop now; None to continue."""
        if self._patience is None or self._stale < self._patience:
            return None
        reports = "report" if self._stale == 1 else "reports"
        return f"no improvement for {self._stale} {reports}"

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best, "reference": self._reference, "stale": self._stale}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._best = state["best"]
        self._reference = state["reference"]
        self._stale = state["stale"]
