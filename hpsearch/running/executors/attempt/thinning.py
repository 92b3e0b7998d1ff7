"""The reports of an attempt that are recorded, where it makes very many.

A driver of 60 trials with 5,000 reports each grows by 7 MB in place of 22.
"""

import time
from bisect import bisect_right
from collections.abc import Callable

from hpsearch.domain import events as ev
from trials.contract import Budget, Finding, Severity

MOST_REPORTS = 1000  # an attempt's reports are all recorded up to this number
SILENT_S = 5.0
"""After so many seconds without a recorded report, the next one is recorded in any case: others see
that the attempt goes on, and its earlier checkpoints may go."""


class Thinning:
    """Chooses the reports of one attempt to record: the first ones, those at the levels of the
    study (its report grid and its rungs), and the last one."""

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self._budget = budget
        self._clock = clock
        self._made = self._recorded = 0
        self._level = 0  # how many levels the last report had reached
        self._since = clock()  # when a report was recorded last
        self._last: ev.Reported | None = None  # if it was held back

    def due(self, report: ev.Reported, until: float) -> bool:
        """True if a report is recorded now, else it is held back; at `until` the attempt waits."""
        self._made += 1
        level = bisect_right(self._budget.report_at, report.resource)
        is_new_level = level != self._level
        self._level = level
        is_early = self._recorded < MOST_REPORTS
        is_late = self._clock() - self._since >= SILENT_S
        is_due = is_new_level or is_early or is_late or report.resource >= until
        self._last = None if is_due else report
        if is_due:
            self._recorded += 1
            self._since = self._clock()
        return is_due

    def rest(self) -> ev.Reported | None:
        """The last report, to be recorded, if it was held back."""
        last, self._last = self._last, None
        self._recorded += last is not None
        return last

    def findings(self) -> tuple[Finding, ...]:
        """A finding if reports were left out."""
        if self._made == self._recorded:
            return ()
        what = f"{self._made:,} reports, of which {self._recorded:,} are recorded"
        hint = f"above {MOST_REPORTS:,} they are thinned: report less often"
        return (Finding("many_reports", f"{what}; {hint}", Severity.NOTICE),)
