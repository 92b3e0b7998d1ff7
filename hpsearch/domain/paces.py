"""The paces of trials: seconds for a unit of the trial budget, on each type of device.

A trial's own pace is that of the device on which it trained last. On a device of another type it is
expected to change as the mean pace of all trials does from that type to the other. A type on which
none has trained yet is assumed to be like all others.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable

from hpsearch.domain.records import Trial

WORTH = 0.25  # the most that a start after a pause may take, as a part of the training that follows


class Paces:
    """The paces of the trials of a study, by type of device; None stands for any type."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        self._devices: list[str | None] = []
        """By trial, the type of device on which it trained last. There may be very many trials."""
        self._paces = array("d")
        """By trial, its pace there; 0 for none."""
        self._known: Counter[str | None] = Counter()
        self._sum: Counter[str | None] = Counter()
        self._slowest: dict[str | None, float] = {}
        for trial in trials:
            self.learn(trial)
            for attempt in trial.attempts:
                self._note(attempt.device, attempt.slowest_pace or 0.0)

    def learn(self, trial: Trial) -> None:
        """Take in the pace that a trial has now."""
        pace = own_pace(trial)
        if pace is None:
            return
        number, device = trial.number, _trained_on(trial)
        missing = number + 1 - len(self._devices)
        self._devices += [None] * missing
        self._paces.extend([0.0] * missing)
        if self._paces[number]:
            self._count(self._devices[number], self._paces[number], -1)
        self._devices[number], self._paces[number] = device, pace
        self._count(device, pace, 1)
        self._note(device, pace)

    def _count(self, device: str | None, pace: float, sign: int) -> None:
        self._known[device] += sign
        self._sum[device] += sign * pace  # type: ignore[assignment]  # it counts seconds

    def _note(self, device: str | None, pace: float) -> None:
        if pace:
            self._slowest[device] = max(pace, self._slowest.get(device, 0.0))

    def mean(self, device: str | None = None) -> float | None:
        """The mean pace on a type of device; None before a trial has reported."""
        known, total = self._known[device], self._sum[device]
        if not known:
            known, total = self._known.total(), self._sum.total()
        return total / known if known else None

    def slowest(self, device: str | None = None) -> float:
        """The slowest pace seen on a type of device; 0 before a trial has reported."""
        slowest = self._slowest
        return slowest[device] if device in slowest else max(slowest.values(), default=0.0)

    def of(self, trial: Trial, device: str | None) -> float | None:
        """The pace of a trial on a type of device; None if it has none."""
        pace, there, here = own_pace(trial), self.mean(_trained_on(trial)), self.mean(device)
        return pace * (here / there) if pace and here and there else pace


def own_pace(trial: Trial) -> float | None:
    """The pace that a trial has shown last; None if it has shown none."""
    if not trial.speed or not math.isfinite(trial.speed):
        return None
    return 1 / trial.speed


def _trained_on(trial: Trial) -> str | None:
    """The type of device on which a trial has shown its pace, or else trains."""
    shown = (each.device for each in reversed(trial.attempts) if each.slowest_pace is not None)
    latest = trial.attempts[-1].device if trial.attempts else None
    return next(shown, latest)
