"""Trials whose network has collapsed: one answers with the majority class for good, so that its
objective stays at the value of a guess, and its losses at those of one.

Recorded curves tell how patient to be: of the classifiers in `benchmarks/recorded`, trained in
full, these rules stop none that ends in the better half.
"""

import math
from itertools import chain, takewhile
from statistics import median

from hpsearch.domain.history import History
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.proposals import LOSSES
from hpsearch.search.rungs import COMPARED, Judgement, Rungs, Verdict
from hpsearch.study_file.models import StudySpec

BEFORE, OVER, FEWEST = 1 / 3, 1 / 6, 3
"""The share of the full budget before which no trial is stopped, the share over which its value
must have stayed the same, and the number of its reports that must show it."""

LEARNT, WORSE = 1 / 2, 1 / 4
"""The least share of the other trials that are better than a guess, and the most that are worse:
where more are, the value has been learnt."""

BELOW = 0.99  # a loss below this share of that of a guess is learning


def collapse(
    spec: StudySpec, history: History, rungs: Rungs, trial: Trial, resource: float
) -> Judgement | None:
    """The end of a trial that has collapsed by its report at a resource; None for one that has not.

    It is compared with the latest trials at the highest rung that it has reached, by what they had
    shown by then.
    """
    total, objective = spec.budget.per_trial.total, spec.objective
    is_late = total * BEFORE <= resource < total
    if trial.rung is None or trial.trains_in_full or not is_late:
        return None
    same = _same(spec, trial, resource)
    if len(same) < FEWEST:
        return None
    first = same[0]
    since, value = first.resource, _value(first)
    if resource - since < OVER * total:
        return None
    rung = rungs.rungs[trial.rung]
    latest = rung.latest(COMPARED, rung.scores)
    others = [_by(history.trials[number], resource) for number in latest if number != trial.number]
    others = [reports for reports in others if reports]
    count = len(others)
    guess = objective.sign * value
    scores = [objective.sign * _value(reports[-1]) for reports in others]
    better = sum(score < guess for score in scores)
    worse = sum(score > guess for score in scores)
    have_learnt = better >= max(FEWEST, LEARNT * count)
    if not have_learnt or worse > WORSE * count:
        return None
    guesses = [[report for report in reports if report.value == first.value] for reports in others]
    guessing = sum(map(bool, guesses))
    if guessing < FEWEST - 1 or _learns(spec, same, list(chain(*guesses))):
        return None
    why = (
        f"has learnt nothing: {objective.metric} {value:.4g} since {since:g}, as by guessing, "
        f"where {better} of {count} others have learnt"
    )
    return Judgement(Verdict.STOP, why)


def _warmup(spec: StudySpec, trial: Trial) -> float:
    value = trial.params.get("warmup", spec.settings.get("warmup"))
    return value if isinstance(value, (int, float)) and 0 <= value < 1 else 0.0


def _same(spec: StudySpec, trial: Trial, resource: float) -> list[ReportRecord]:
    """The latest reports after the warm-up, ascending, that show one and the same value; none if
    that is not the best that the trial has shown, also in an attempt that was lost."""
    value = trial.reports[resource].value
    if value is None or value != trial.value:
        return []
    begins = _warmup(spec, trial) * spec.budget.per_trial.total
    latest = takewhile(lambda each: each.value == value, reversed(_by(trial, resource)))
    return [each for each in latest if each.resource >= begins][::-1]


def _by(trial: Trial, resource: float) -> list[ReportRecord]:
    reports = trial.reports
    return [reports[at] for at in sorted(at for at in reports if at <= resource)]


def _value(report: ReportRecord) -> float:
    return math.nan if report.value is None else report.value


def _learns(spec: StudySpec, same: list[ReportRecord], guesses: list[ReportRecord]) -> bool:
    for name in chain(*LOSSES):
        own, usual = _finite(same, name), _finite(guesses, name)
        if own and usual and min(own) < BELOW * median(usual):
            return True
    return False


def _finite(reports: list[ReportRecord], name: str) -> list[float]:
    values = [report.metrics.get(name, math.nan) for report in reports]
    return [value for value in values if math.isfinite(value)]
