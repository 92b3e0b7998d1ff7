"""The reports of an attempt that are recorded, where it makes very many."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable

from hpsearch.domain import events as ev
from trials.contract import Budget, Finding, Goal, Severity

MOST = 1000
"""An attempt's reports are all recorded up to this number."""
SILENT_S = 5.0
"""After so many seconds without a recorded report, the next one is recorded in any case: others see
that the attempt goes on, and its earlier checkpoints may go."""


class Thinning:
    """Chooses which reports of one attempt are recorded: those at the levels of the study (its
    report grid and its rungs), and of those between two of them the best and the last one."""

    def __init__(
        self, budget: Budget, goal: Goal | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._budget = budget
        self._goal = goal
        self._clock = clock
        self._made = self._recorded = 0
        self._level = 0  # how many levels the last report had reached
        self._since = clock()  # when a report was recorded last
        self._best: ev.Reported | None = None  # of those that were held back since
        self._last: ev.Reported | None = None

    def due(self, report: ev.Reported, until: float) -> list[ev.Reported]:
        """The reports to record now, in their order; empty if this one is held back. The attempt
        waits for a command at the level `until`."""
        self._made += 1
        if not self._is_due(report.resource, until):
            self._last = report
            if self._best is None or self._loss(report) < self._loss(self._best):
                self._best = report
            return []
        due = [*self.rest(), report]
        self._recorded += 1
        self._since = self._clock()
        return due

    def rest(self) -> list[ev.Reported]:
        """The reports to record of those that were held back: the best and the last one."""
        held = [self._best] if self._best is self._last else [self._best, self._last]
        self._best = self._last = None
        rest = [report for report in held if report is not None]
        self._recorded += len(rest)
        return rest

    def findings(self) -> tuple[Finding, ...]:
        """A finding that reports were left out, if some were."""
        if self._made == self._recorded:
            return ()
        what = f"{self._made:,} reports, of which {self._recorded:,} are recorded"
        hint = f"above {MOST:,} they are thinned: report less often"
        return (Finding("many_reports", f"{what}; {hint}", Severity.NOTICE),)

    def _is_due(self, resource: float, until: float) -> bool:
        level = bisect_right(self._budget.report_at, resource)
        is_new_level = level != self._level
        self._level = level
        is_early = self._recorded < MOST
        is_late = self._clock() - self._since >= SILENT_S
        return is_new_level or is_early or is_late or resource >= until

    def _loss(self, report: ev.Reported) -> float:
        """The objective of a report, so that less is better; infinite if it has none."""
        if self._goal is None:
            return math.inf
        value = report.metrics.get(self._goal.metric, math.nan)
        if math.isnan(value):
            return math.inf
        return -value if self._goal.maximize else value
