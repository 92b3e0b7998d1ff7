"""A run's health: what its history shows, as named findings with their evidence.

Every check is a function from a `RunHistory` to its evidence or None, with its thresholds beside
it. They are set so that a healthy run has no findings; each states the reason for its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from trials.contract import Finding, Severity
from trials.telemetry.history import Losses, RunHistory

Check = Callable[[RunHistory], str | None]
"""Finds the evidence in a history; None where there is none."""

FEWEST_POINTS = 20
"""Points of a series below which its history says nothing: halves and quarters of less are single
steps."""
FEWEST_REPORTS = 4
"""Reports below which a trend is two points and a line between them."""

DIVERGED_RATIO = 1.5
"""The last tenth's mean loss over the lowest tenth's. Batches are noisy, tenths are not: a run that
ends with half as much loss again as it had reached has lost what it learnt."""
DIVERGED_MARGIN = 0.05
"""And by how much it must be higher: near a loss of 0, one hard batch makes any ratio."""
PLATEAU_GAIN = 0.01
"""The second half of a run that lowers the validation loss by less than this share was not worth
its cost."""
OVERFIT_RISE = 0.05
"""Validation loss above its best, as a share; small validation sets rise less by chance."""
OVERFIT_FALL = 0.05
"""Training loss fallen meanwhile, as a share: if it stays the same, the model is not fitting the
training data closer."""
STARVATION_SHARE = 0.3
"""Time waiting for batches over training time: from here on, faster data is worth more than a
faster device."""


def diagnose(history: RunHistory, checks: Sequence[Check] | None = None) -> tuple[Finding, ...]:
    """Every finding of a run, the most severe first.

    Args:
        history: The run's history.
        checks: What to look for; None for everything.
    """
    wanted = CHECKS if checks is None else checks
    found = []
    for check in wanted:
        evidence = check(history)
        if evidence is not None:
            found.append(Finding(check.__name__, evidence, SEVERITY[check]))
    found.sort(key=_rank)
    return tuple(found)


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
    """The second half of the run hardly lowered the validation loss.

    Where that is overfitting, `overfitting` is the finding.
    """
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


def data_starvation(history: RunHistory) -> str | None:
    """The device waits for batches."""
    waited = history.waited_s
    if history.steps < FEWEST_POINTS or waited <= STARVATION_SHARE * history.trained_s:
        return None
    share = waited / history.trained_s
    return f"{share:.0%} of the training time ({waited:.3g} s) was spent waiting for batches"


SEVERITY: dict[Check, Severity] = {
    divergence: Severity.CRITICAL,
    overfitting: Severity.WARNING,
    plateau: Severity.NOTICE,
    data_starvation: Severity.WARNING,
}
"""Every check; a finding has the name of its check."""
CHECKS = tuple(SEVERITY)
_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.NOTICE)


def _rank(finding: Finding) -> int:
    return _ORDER.index(finding.severity)


def _best(reports: Sequence[Losses]) -> Losses:
    return min(reports, key=lambda report: report.loss)


def _step(history: RunHistory, point: int) -> int:
    return point * history.every + 1
