"""The reports of a training beside those that its trial has on record."""

import math
import re
from collections.abc import Mapping

from trials.contract import Report

OF_THE_RUN = re.compile(r"(runtime|_per_second|seconds|_time|time_s|_bytes|utilization)$")
"""The end of the names of metrics of time or memory, which differ between any trainings."""


class Comparison:
    """Compares a training with a trial's record, report by report, from its first report on: a
    training that continues an interrupted one has made the earlier ones before.

    Args:
        recorded: The metrics of each report of the trial, by its resource.
        ended: True if the trial ended by itself with its last report. Any other was paused or
            stopped there, and this training goes on.
    """

    def __init__(self, recorded: Mapping[float, Mapping[str, float]], *, ended: bool) -> None:
        self._recorded = recorded
        self._ended = ended
        self._reached: list[float] = []
        self.difference: str | None = None
        """The first difference, for people; None while there is none."""
        self.same = 0  # the number of reports that were the same

    def add(self, report: Report) -> None:
        at = report.resource
        self._reached.append(at)
        before = self._recorded.get(at)
        if before is not None:
            self._compare(at, before, report.metrics)
        elif at < max(self._recorded, default=0.0):
            self._differ(at, "the trial has no report there")
        elif self._ended:
            self._differ(at, "the trial had ended before")

    def end(self) -> None:
        """Look for reports that the trial has, and the training has not, which has ended."""
        first = min(self._reached, default=math.inf)
        missing = sorted(at for at in self._recorded if at > first and at not in self._reached)
        if missing:
            self._differ(missing[0], "it was not reported this time")

    def _compare(self, at: float, before: Mapping[str, float], now: Mapping[str, float]) -> None:
        for name in {**before, **now}:
            if OF_THE_RUN.search(name) is not None:
                continue
            if not _is_same(before.get(name), now.get(name)):
                self._differ(
                    at, f"{name} {_shown(now.get(name))}, on record {_shown(before.get(name))}"
                )
                return
        self.same += 1

    def _differ(self, at: float, what: str) -> None:
        self.difference = self.difference or f"at {at:g}: {what}"


def _is_same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))


def _shown(value: float | None) -> str:
    return "missing" if value is None else repr(value)
