"""The first difference between a trial's record and its repetition, and changes of files, code and
versions."""

from __future__ import annotations

import math
import re

from hpsearch.domain.records import Environment
from hpsearch.running.reproduction.recorded import RecordedTraining
from hpsearch.running.reproduction.repetition import Repeated
from trials.contract import Report

OF_THE_RUN = re.compile(
    r"(runtime|_per_second|seconds|_time|time_s|_bytes|_joules|utilization|\bmfu)$"
)
"""The end of the names of metrics of time, memory or energy, which differ between any trainings."""
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")


class Comparison:
    """Compares a repetition with the trial's record, report by report."""

    def __init__(self, recorded: RecordedTraining) -> None:
        self._recorded = recorded
        self._reached: set[float] = set()
        self.difference: str | None = None
        """The first difference, for people; None while there is none."""
        self.reports = 0
        """The number of reports that were the same."""

    def add(self, report: Report) -> None:
        """Compare a report."""
        at = report.resource
        self._reached.add(at)
        before = self._recorded.reports.get(at)
        if before is None and self._recorded.thinned and at < self._recorded.end:
            return
        if before is None:
            what = "the trial had ended before" if at > self._recorded.end else "it has none there"
            self._differ(f"at {at:g}: {what}")
            return
        for name in {**before, **report.metrics}:
            was, now = before.get(name), report.metrics.get(name)
            if OF_THE_RUN.search(name) is None and not _is_same(was, now):
                self._differ(f"at {at:g}: {_difference(name, was, now)}")
                return
        self.reports += 1

    def end(self, repeated: Repeated) -> None:
        """Compare the end, and look for missing reports."""
        missing = sorted(set(self._recorded.reports) - self._reached)
        if missing:
            self._differ(f"at {missing[0]:g}: it was not reported this time")
        ending = self._ending(repeated)
        if ending is not None:
            self._differ(f"in its end: {ending}")

    def _differ(self, what: str) -> None:
        self.difference = self.difference or what

    def _ending(self, repeated: Repeated) -> str | None:
        """The difference between the two ends; None if there is none."""
        failure, error = repeated.failure, self._recorded.error
        if failure is None and error is not None:
            return f"the trial failed ({error[0].value}: {error[1]}), and this did not"
        if failure is None:
            is_longer = self._recorded.must_end and repeated.finished is None
            return "the trial ended here by itself, and this did not" if is_longer else None
        now = f"{failure.kind}: {failure.text}"
        if error is None:
            return f"this failed ({now}), and the trial did not"
        kind, text = error
        if failure.kind == kind.value and _plain(failure.text) == _plain(text):
            return None
        return f"the trial failed with {kind.value}: {text} - and this with {now}"


def _difference(metric: str, recorded: float | None, now: float | None) -> str:
    if recorded is None or now is None:
        return f"{metric} is missing {'now' if now is None else 'on record'}"
    return f"{metric} {now!r} instead of {recorded!r}"


def _is_same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))


def _plain(text: str) -> str:
    """The text of an error without addresses in memory, which differ each time."""
    return _ADDRESS.sub("0x", text).strip()


def changes(before: Environment, now: Environment) -> list[str]:
    """Changes of files, code and versions since a trial ran, in phrases."""
    found = []
    if before.data_fingerprint != now.data_fingerprint:
        found.append("the files that the task names have changed")
    if before.revision != now.revision:
        found.append(f"the code is of git revision {now.revision} instead of {before.revision}")
    for name, was in before.packages.items():
        is_now = now.packages.get(name, "not installed")
        if was != is_now:
            found.append(f"{name} {is_now} instead of {was}")
    return found
