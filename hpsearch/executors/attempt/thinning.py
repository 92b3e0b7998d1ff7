"""The reports of an attempt that are recorded, where it makes very many."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable

from hpsearch.domain import events as ev
from trials.contract import Budget, Finding, Goal, Severity

MOST = 1000
"""An attempt's reports are all recorded up to this number. After that its budget is divided into so
many parts, and of each part the first, the best and the last report are."""
SILENT_S = 5.0
"""After so many seconds without a recorded report, the next one is recorded in any case: others see
that the attempt goes on, and its earlier checkpoints may go."""


class Thinning:
    """Chooses which reports of one attempt are recorded: those at the levels of the study (its
    report grid and its rungs), the attempt's best and its last one always are."""

    def __init__(
        self, budget: Budget, goal: Goal | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._budget = budget
        self._goal = goal
        self._clock = clock
        self._made = self._recorded = 0
        self._place = (0, 0)
        """The levels and the parts of the budget that the last report had reached."""
        self._since = clock()  # when a report was recorded last
        self._best: ev.Reported | None = None  # of those that were held back since
        self._last: ev.Reported | None = None

    def due(self, report: ev.Reported, until: float) -> list[ev.Reported]:
        """The reports to record now, in their order; empty if this one is held back. The attempt
        waits for a command at the level `until`."""
        self._made += 1
        if not self._is_due(report.resource, until):
            self._hold_back(report)
            return []
        due = [*self.rest(), report]
        self._recorded += 1
        self._since = self._clock()
        return due

    def rest(self) -> list[ev.Reported]:
        """The reports to record of those that were held back: the best and the last one."""
        best, last = self._best, self._last
        self._best = self._last = None
        held = [best, last] if best is not last else [last]
        rest = [report for report in held if report is not None]
        self._recorded += len(rest)
        return rest

    def findings(self) -> tuple[Finding, ...]:
        """That reports were left out, if some were."""
        if self._made == self._recorded:
            return ()
        what = f"{self._made:,} reports, of which {self._recorded:,} are recorded"
        hint = f"above {MOST:,} they are thinned: report less often"
        return (Finding("many_reports", f"{what}; {hint}", Severity.NOTICE),)

    def _is_due(self, resource: float, until: float) -> bool:
        place = self._place_of(resource)
        moved, self._place = place != self._place, place
        is_early = self._recorded < MOST
        is_late = self._clock() - self._since >= SILENT_S
        return moved or is_early or is_late or resource >= until

    def _place_of(self, resource: float) -> tuple[int, int]:
        budget = self._budget
        part = min(resource / budget.total, 1.0) * MOST
        return bisect_right(budget.report_at, resource), int(part)

    def _hold_back(self, report: ev.Reported) -> None:
        self._last = report
        if self._best is None or self._is_better(report, self._best):
            self._best = report

    def _is_better(self, report: ev.Reported, other: ev.Reported) -> bool:
        goal = self._goal
        if goal is None:
            return False
        value = report.metrics.get(goal.metric, math.nan)
        before = other.metrics.get(goal.metric, math.nan)
        if math.isnan(before):
            return True
        return value > before if goal.maximize else value < before
