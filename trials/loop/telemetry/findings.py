"""A run's health, judged by its history: named findings with their evidence.

A check is a function from a `RunHistory` to its evidence or None. The thresholds are set so that a
healthy run has no findings.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from trials.contract import Budget, Finding, Severity
from trials.loop.telemetry.history import Losses, RunHistory

Check = Callable[[RunHistory], str | None]  # finds evidence in a history, or None

FEWEST_POINTS = 20  # points of a series below which a check finds nothing
FEWEST_REPORTS = 4  # reports below which a check finds nothing: two points do not make a trend
DIVERGED_RATIO = 1.5
"""The last tenth's mean loss over the lowest tenth's. Batches are noisy, tenths are not."""
DIVERGED_MARGIN = 0.05
"""The least difference of the two: near a loss of 0, one hard batch makes any ratio."""
PLATEAU_GAIN = 0.01  # the least fall of the validation loss in the second half of a run, as a share
OVERFIT_RISE = 0.05
"""The rise of the validation loss above its best, as a share; by chance it rises less."""
OVERFIT_FALL = 0.05  # the fall of the training loss meanwhile, as a share


def diagnose(history: RunHistory, checks: Sequence[Check] | None = None) -> tuple[Finding, ...]:
    """The findings of a run, the most severe first; `checks` is None for all checks."""
    found = []
    for check in CHECKS if checks is None else checks:
        evidence = check(history)
        if evidence is not None:
            found.append(Finding(check.__name__, evidence, SEVERITY[check]))
    found.sort(key=lambda finding: _MOST_SEVERE_FIRST.index(finding.severity))
    return tuple(found)


def beyond_budget(resource: float, budget: Budget) -> Finding:
    """The finding on a run that trained beyond its budget, where only its result counts."""
    what = f"it went on to {resource:g}, beyond its budget of {budget.total:g} {budget.unit.value}"
    hint = "in a new study, raise per_trial to the most that a trial reports"
    return Finding("beyond_budget", f"{what}: {hint}", Severity.WARNING)


def divergence(history: RunHistory) -> str | None:
    """The training loss became infinite or not a number, or rose and stayed up."""
    return _not_finite(history) or _risen(history)


def _not_finite(history: RunHistory) -> str | None:
    for point, loss in enumerate(history.losses):
        if not math.isfinite(loss):
            at = _step(history, point)
            return f"the training loss became {loss} at {history.counted} {at}"
    for report in history.reports:
        if not math.isfinite(report.loss):
            return f"the validation loss became {report.loss} at {history.counted} {report.step}"
    return None


def _risen(history: RunHistory) -> str | None:
    losses = history.losses
    if len(losses) < FEWEST_POINTS:
        return None
    tenth = len(losses) // 10
    starts = range(0, len(losses) - tenth + 1, tenth)
    means = [fmean(losses[start : start + tenth]) for start in starts]
    lowest = min(means)
    last = fmean(losses[-tenth:])
    if last <= lowest + DIVERGED_MARGIN:
        return None
    if last <= DIVERGED_RATIO * lowest:
        return None
    point = means.index(lowest) * tenth
    at = _step(history, point)
    where = f"around {history.counted} {at}"
    return f"the training loss rose from {lowest:.3g} {where} to {last:.3g} at the end"


def overfitting(history: RunHistory) -> str | None:
    """The validation loss rises while the training loss falls."""
    if len(history.reports) < FEWEST_REPORTS:
        return None
    last = history.reports[-1]
    best = _best(history.reports)
    rise = last.loss - best.loss
    fall = best.train_loss - last.train_loss
    if rise <= OVERFIT_RISE * abs(best.loss):
        return None
    if fall <= OVERFIT_FALL * abs(best.train_loss):
        return None
    return (
        f"since {history.counted} {best.step} the validation loss rose "
        f"from {best.loss:.3g} to {last.loss:.3g} "
        f"while the training loss fell from {best.train_loss:.3g} to {last.train_loss:.3g}"
    )


def plateau(history: RunHistory) -> str | None:
    """The second half of the run hardly lowered the validation loss, without overfitting."""
    reports = history.reports
    if len(reports) < FEWEST_REPORTS:
        return None
    if overfitting(history) is not None:
        return None
    half = len(reports) // 2
    before = _best(reports[:half])
    after = _best(reports[half:])
    gain = before.loss - after.loss
    if gain >= PLATEAU_GAIN * abs(before.loss):
        return None
    reached = f"{before.loss:.3g} by {history.counted} {before.step}"
    return f"the validation loss was {reached}, and {after.loss:.3g} at best after"


SEVERITY: dict[Check, Severity] = {
    divergence: Severity.CRITICAL,
    overfitting: Severity.WARNING,
    plateau: Severity.NOTICE,
}
"""Every check; a finding has the name of its check."""
CHECKS = tuple(SEVERITY)
_MOST_SEVERE_FIRST = (Severity.CRITICAL, Severity.WARNING, Severity.NOTICE)


def _best(reports: Sequence[Losses]) -> Losses:
    return min(reports, key=lambda report: report.loss)


def _step(history: RunHistory, point: int) -> int:
    return point * history.every + 1
