"""A training beside the one on record: each report, and how it ended."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch.cli.reproduce.course import RecordedCourse
from hpsearch.cli.reproduce.training import Repeated

OF_THE_RUN = re.compile(
    r"(runtime|_per_second|seconds|_time|time_s|_bytes|_joules|utilization|\bmfu)$"
)
"""Ends the names of metrics that measure time, memory or energy, which no two trainings have in
common."""
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")


@dataclass(frozen=True)
class Difference:
    """A metric that is not the same; None where a report has no such metric."""

    metric: str
    recorded: float | None
    now: float | None

    @property
    def relative(self) -> float:
        """By what share of the larger one they differ; infinite where one is missing or is not a
        number."""
        if self.recorded is None or self.now is None:
            return math.inf
        largest = max(abs(self.recorded), abs(self.now))
        apart = abs(self.recorded - self.now)
        relative = apart / largest if largest else 0.0
        return relative if math.isfinite(relative) else math.inf


@dataclass(frozen=True)
class ComparedReport:
    """A report beside the one on record.

    Args:
        resource: Its level.
        metrics: How many metrics were compared.
        differences: Those that are not the same, the largest first.
        missing: What is missing there, for people; None if both are there.
    """

    resource: float
    metrics: int = 0
    differences: tuple[Difference, ...] = ()
    missing: str | None = None

    @property
    def relative(self) -> float:
        """The largest difference; 0 if it is the same bit for bit."""
        if self.missing is not None:
            return math.inf
        return max((each.relative for each in self.differences), default=0.0)


@dataclass
class Comparison:
    """A trial beside its repetition.

    Args:
        course: The trial's.
        only: The only metric that is compared; None for all but those of `OF_THE_RUN`.

    Attributes:
        reports: Those that were compared so far.
        ending: What is different about the end; None if nothing is.
    """

    course: RecordedCourse
    only: str | None = None
    reports: list[ComparedReport] = field(default_factory=list)
    ending: str | None = None

    def add(self, resource: float, metrics: Mapping[str, float]) -> ComparedReport:
        """Compare a report."""
        recorded = self.course.reports.get(resource)
        if recorded is None:
            is_beyond = resource > self.course.end
            what = "the trial had ended before" if is_beyond else "the trial has none there"
            compared = ComparedReport(resource, missing=what)
        else:
            compared = self._compared(resource, recorded, metrics)
        self.reports.append(compared)
        return compared

    def _compared(
        self, resource: float, recorded: Mapping[str, float], now: Mapping[str, float]
    ) -> ComparedReport:
        names = [name for name in {**recorded, **now} if self._counts(name)]
        found = []
        for name in names:
            difference = Difference(name, recorded.get(name), now.get(name))
            if not _same(difference.recorded, difference.now):
                found.append(difference)
        found.sort(key=lambda each: -each.relative)
        return ComparedReport(resource, len(names), tuple(found))

    def _counts(self, metric: str) -> bool:
        if self.only is not None:
            return metric == self.only
        return OF_THE_RUN.search(metric) is None

    def end(self, outcome: Repeated) -> None:
        """Compare the end, and what was not reported."""
        reached = {each.resource for each in self.reports}
        for resource in sorted(self.course.reports):
            if resource not in reached:
                what = "it was not reported this time"
                self.reports.append(ComparedReport(resource, missing=what))
        self.ending = self._ending(outcome)

    def _ending(self, outcome: Repeated) -> str | None:
        failure = outcome.failure
        error = self.course.error
        if failure is None:
            if error is not None:
                return f"the trial failed ({error[0].value}: {error[1]}), and this did not"
            is_ended = outcome.finished is not None
            if self.course.must_end and not is_ended:
                return "the trial ended here by itself, and this did not"
            return None
        now = f"{failure.kind}: {failure.text}"
        if error is None:
            return f"this failed ({now}), and the trial did not"
        kind, text = error
        if failure.kind == kind.value and _plain(failure.text) == _plain(text):
            return None
        return f"the trial failed with {kind.value}: {text} - and this with {now}"

    @property
    def relative(self) -> float:
        """The largest difference of all reports; 0 if all are the same bit for bit."""
        return max((each.relative for each in self.reports), default=0.0)

    def first_beyond(self, tolerance: float) -> ComparedReport | None:
        """The first report that differs by more than a share; None if there is none."""
        beyond = (each for each in self.reports if each.relative > tolerance)
        return min(beyond, key=lambda each: each.resource, default=None)

    def is_same(self, tolerance: float) -> bool:
        """Whether nothing differs by more than a share."""
        return self.relative <= tolerance and self.ending is None

    def as_plain(self) -> dict[str, Any]:
        """As plain values. What is infinite is missing."""
        reports = []
        for each in self.reports:
            differences = [
                {"metric": d.metric, "recorded": d.recorded, "now": d.now, "relative": d.relative}
                for d in each.differences
            ]
            row = {"resource": each.resource, "relative": each.relative, "missing": each.missing}
            reports.append({**row, "differences": differences})
        return {"largest_difference": self.relative, "reports": reports, "ending": self.ending}


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))


def _plain(text: str) -> str:
    """The text of an error without what is another one each time: addresses in memory."""
    return _ADDRESS.sub("0x", text).strip()
