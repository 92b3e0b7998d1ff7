"""The paces of trials: seconds for a unit of the trial budget, on each type of device.

A trial's own pace is that of the device on which it trained last. On a device of another type it is
expected to change as the mean pace of all trials does from that type to the other. A type on which
none has trained yet is assumed to be like all others.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from hpsearch.domain.records import Trial


class _OnDevice:
    """The paces of the trials that trained last on one type of device."""

    def __init__(self) -> None:
        self._paces = array("d")
        """By trial; NaN of one that has none."""
        self.known = 0
        self.sum = 0.0
        self.slowest = 0.0

    def put(self, number: int, pace: float) -> None:
        """Set the pace of a trial."""
        self.forget(number)
        self._paces.extend([math.nan] * (number + 1 - len(self._paces)))
        self._paces[number] = pace
        self.known += 1
        self.sum += pace
        self.slowest = max(self.slowest, pace)

    def forget(self, number: int) -> None:
        """Take out a trial."""
        if number < len(self._paces) and not math.isnan(self._paces[number]):
            self.sum -= self._paces[number]
            self.known -= 1
            self._paces[number] = math.nan


class Paces:
    """The paces of the trials of a study, by type of device; None stands for any type."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._on: dict[str | None, _OnDevice] = {}
        for trial in trials:
            self.learn(trial)
            for attempt in trial.attempts:
                if attempt.slowest_pace is not None:
                    on = self._on.setdefault(attempt.device, _OnDevice())
                    on.slowest = max(on.slowest, attempt.slowest_pace)

    def learn(self, trial: Trial) -> None:
        """Take in the pace that a trial has now."""
        pace = own_pace(trial)
        if pace is None:
            return
        for each in self._on.values():
            each.forget(trial.number)
        self._on.setdefault(_trained_on(trial), _OnDevice()).put(trial.number, pace)

    def mean(self, device: str | None = None) -> float | None:
        """The mean pace on a type of device; None before a trial has reported."""
        on = self._on.get(device)
        of_these = [on] if on and on.known else self._on.values()
        known = sum(each.known for each in of_these)
        return sum(each.sum for each in of_these) / known if known else None

    def slowest(self, device: str | None = None) -> float:
        """The slowest pace seen on a type of device; 0 before a trial has reported."""
        on = self._on.get(device)
        of_these = [on] if on else self._on.values()
        return max((each.slowest for each in of_these), default=0.0)

    def of(self, trial: Trial, device: str | None) -> float | None:
        """The pace of a trial on a type of device; None if it has none."""
        pace, before = own_pace(trial), _trained_on(trial)
        if pace is None or before == device:
            return pace
        there, here = self.mean(before), self.mean(device)
        return pace * (here / there) if here and there else pace


def own_pace(trial: Trial) -> float | None:
    """The pace that a trial has shown last; None if it has shown none."""
    if not trial.speed or not math.isfinite(trial.speed):
        return None
    return 1 / trial.speed


def _trained_on(trial: Trial) -> str | None:
    """The type of device on which a trial has shown its pace: before it reports there, the one
    that it continues on is not the one."""
    shown = (each.device for each in reversed(trial.attempts) if each.slowest_pace is not None)
    latest = trial.attempts[-1].device if trial.attempts else None
    return next(shown, latest)
