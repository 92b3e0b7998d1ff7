"""The worth of a report: its objectives, and how far it exceeds the study's limits.

A trial is valued by its best report: first by how little it exceeds the limits, then by its value
(Deb, "An efficient constraint handling method for genetic algorithms", 2000). With several
objectives it is valued by its latest report, and an objective of Optuna by what it returns, which
is its report at the full budget; and so is one whose reports are means over folds or seeds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.study_file.models import Limit, StudySpec
from hpsearch.study_file.space import is_open
from trials.contract import ROUNDS

OUTSIDE = 1e300
"""Scores of reports that exceed a limit lie above this, and above those of all that do not."""


@dataclass(frozen=True, slots=True)
class Worth:
    """The worth of a report."""

    values: tuple[float, ...] | None
    """Of all objectives; None if one of them is not a finite number."""
    margins: Mapping[str, float]
    """By limited metric, its distance outside, as a share of the bound; 0 or less inside."""
    score: float
    """The order of reports at the same resource; less is better, infinite without a value."""
    improves: bool  # true if the report becomes the trial's value


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """The finite values of a report in a study of several objectives."""

    violation: float  # the excess over the study's limits
    losses: tuple[float, ...]  # of all objectives, to be minimised


def score_of(value: float | None, sign: float) -> float:
    """A value as a score to minimise; what is not a number is worst."""
    if value is None or math.isnan(value):
        return math.inf
    return sign * value


class Scoring:
    """Values the reports of one study."""

    def __init__(self, spec: StudySpec) -> None:
        self._objectives = spec.objectives
        self._sign = spec.objectives[0].sign
        self._limits = spec.constraints
        self._returns = is_open(spec.task)
        """True if the report at the full budget is what an objective has returned."""
        self._total = spec.budget.per_trial.total
        self._is_mean = spec.budget.per_trial.unit in ROUNDS

    def worth_of(self, report: ReportRecord, trial: Trial) -> Worth:
        """The worth of a report that has all metrics of objectives and limits; its trial has its
        former value."""
        metrics = report.metrics
        values = [metrics[objective.metric] for objective in self._objectives]
        margins = self._margins(metrics)
        score = self._score(report, margins)
        if not all(map(math.isfinite, values)):
            return Worth(None, margins, score, improves=False)
        improves = self._improves(report, _sum_outside(margins), trial)
        return Worth(tuple(map(float, values)), margins, score, improves)

    def score(self, report: ReportRecord) -> float:
        """The order of reports at the same resource; less is better."""
        return self._score(report, self._margins(report.metrics))

    def is_finite(self, report: ReportRecord) -> bool:
        """True if all objectives of a report are finite numbers."""
        values = [report.metrics.get(each.metric, math.nan) for each in self._objectives]
        return all(map(math.isfinite, values))

    def point(self, report: ReportRecord) -> ParetoPoint | None:
        """All objectives of a report; None if one of them is not a finite number."""
        metrics = report.metrics
        losses = tuple(each.sign * metrics[each.metric] for each in self._objectives)
        if not all(map(math.isfinite, losses)):
            return None
        return ParetoPoint(_sum_outside(self._margins(metrics)), losses)

    def _score(self, report: ReportRecord, margins: Mapping[str, float]) -> float:
        score = score_of(report.value, self._sign)
        over = _sum_outside(margins)
        if over == 0.0 or not math.isfinite(score):
            return score
        return OUTSIDE * (1 + over / (1 + over))

    def _improves(self, report: ReportRecord, violation: float, trial: Trial) -> bool:
        if self._returns and report.resource >= self._total:
            return True
        if len(self._objectives) > 1 or self._is_mean or trial.value is None:
            return True
        before = (trial.violation, score_of(trial.value, self._sign))
        now = (violation, score_of(report.value, self._sign))
        return now < before

    def _margins(self, metrics: Mapping[str, float]) -> dict[str, float]:
        return {name: margin(limit, metrics[name]) for name, limit in self._limits.items()}


def margin(limit: Limit, value: float) -> float:
    """The distance of a value outside a limit, as a share of the bound; 0 or less inside.

    A value that is not a finite number lies outside by a whole bound.
    """
    if not math.isfinite(value):
        return 1.0
    margins: list[float] = []
    if limit.max is not None:
        margins.append((value - limit.max) / (abs(limit.max) or 1.0))
    if limit.min is not None:
        margins.append((limit.min - value) / (abs(limit.min) or 1.0))
    return max(margins)


def _sum_outside(margins: Mapping[str, float]) -> float:
    return sum(max(0.0, margin) for margin in margins.values())
