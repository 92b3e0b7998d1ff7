"""What a report says of its trial: the values of its objectives, and how far it oversteps the study's limits.

A trial stands by its best report. Of two reports, one that keeps the limits is better than one that does not; of two
that do not, the one that oversteps them by less; of two that do, the one with the better value. With several
objectives no value is better than all others, and a trial stands by its latest report.

Source of the order: Deb, "An efficient constraint handling method for genetic algorithms" (2000).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hpsearch.events import Reported
from hpsearch.records import CONSTRAINT, Report, Trial
from hpsearch.rungs import score_of
from hpsearch.spec import Limit, StudySpec

OUTSIDE = 1e300
"""Scores of reports that overstep a limit lie above this, and above those of all that do not."""


class Measures:
    """How the reports of one study are read."""

    def __init__(self, spec: StudySpec) -> None:
        self._objectives = spec.objectives
        self._limits = spec.constraints

    def missing(self, report: Reported) -> str | None:
        """Which metrics of objectives and constraints a report lacks, in a sentence; None if it has them all."""
        wanted = dict.fromkeys([*(objective.metric for objective in self._objectives), *self._limits])
        lacking = [metric for metric in wanted if metric not in report.metrics]
        if not lacking:
            return None
        return (
            f"the report at {report.resource:g} has no {', '.join(lacking)}; it has {', '.join(sorted(report.metrics))}"
        )

    def report_of(self, event: Reported, now: float) -> Report:
        """The record of a report; its value is that of the first objective."""
        return Report(
            trial=event.trial,
            resource=event.resource,
            value=_finite(event.metrics[self._objectives[0].metric]),
            metrics=dict(event.metrics),
            attempt=event.attempt,
            step=event.step,
            elapsed=event.elapsed,
            created=now,
        )

    def stand_by(self, trial: Trial, report: Report) -> None:
        """Let a trial stand by its newest report where that is better than what it stood by."""
        values = [_finite(report.metrics[objective.metric]) for objective in self._objectives]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return
        several = len(values) > 1
        if not several and trial.value is not None and not self._is_better(report, trial):
            return
        trial.value = known[0]
        trial.values = known if several else None
        trial.system_attrs.update({CONSTRAINT + metric: over for metric, over in self._margins(report.metrics).items()})

    def score(self, report: Report) -> float:
        """What reports at the same resource are ordered by, less is better; infinite without a value."""
        score = score_of(report.value, self._objectives[0].sign)
        over = self._violation(report)
        if over == 0.0 or not math.isfinite(score):
            return score
        return OUTSIDE * (1 + over / (1 + over))

    def _is_better(self, report: Report, trial: Trial) -> bool:
        sign = self._objectives[0].sign
        there, here = score_of(trial.value, sign), score_of(report.value, sign)
        return (self._violation(report), here) < (trial.violation, there)

    def _violation(self, report: Report) -> float:
        return sum(max(0.0, margin) for margin in self._margins(report.metrics).values())

    def _margins(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """By limited metric, how far it lies outside, as a share of the bound; 0 or less where it keeps the limit."""
        return {metric: margin(limit, metrics[metric]) for metric, limit in self._limits.items()}


def margin(limit: Limit, value: float) -> float:
    """How far a value lies outside a limit, as a share of the bound; 0 or less inside. What is no number is outside."""
    if not math.isfinite(value):
        return 1.0
    over = [] if limit.max is None else [(value - limit.max) / (abs(limit.max) or 1.0)]
    under = [] if limit.min is None else [(limit.min - value) / (abs(limit.min) or 1.0)]
    return max([*over, *under])


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
