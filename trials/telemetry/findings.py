"""A run's health: what its course shows, as named findings with their evidence.

Every check is a function from `RunCourse` to a finding or None, with its thresholds beside it. They
are set so that a healthy run has no findings; each states the reason for its value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from statistics import fmean, median

from trials.contract import Finding, Severity
from trials.telemetry.course import Reading, RunCourse

Check = Callable[[RunCourse], str | None]
"""Finds the evidence in a course; None where there is none."""

FEWEST_POINTS = 20
"""Points of a series below which its course says nothing: halves and quarters of less are single
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
SPIKE_RATIO = 20.0
"""A gradient norm over the usual one: the median around it, or that of the first quarter where that
is more, since what is learnt leaves small gradients beside which any batch looks large. Batches of
a healthy run differ by a few times; 20 times is what clipping is for."""
SPIKE_WINDOW = 10
"""Points on either side that a spike is compared with."""
COLLAPSE_RATIO = 1e-3
"""Gradient norms at the end over those at the beginning; below it steps change nothing any more."""
COLLAPSE_LOSS = 0.5
"""While at least this share of the first loss is left: a model that has learnt its data also ends
with small ones."""
MEMORY_GROWTH = 0.1
"""Memory grown since the first quarter of the run (in which caches fill), as a share."""
MIB = 1 << 20
MEMORY_BYTES = 32 * MIB
"""And in bytes: allocators keep a few megabytes for later."""
THROUGHPUT_DROP = 0.7
"""Samples per second in the last third of the reports over those before; clocks and neighbours make
10 or 20 %."""
STARVATION_SHARE = 0.3
"""Time waiting for batches over training time: from here on, faster data is worth more than a
faster device."""
PADDING_SHARE = 0.4
"""Padding among what was computed. Bucketing leaves a tenth; at this share two of five products are
for nothing."""
SKIPPED_SHARE = 0.02
"""Steps skipped by the fp16 loss scaler. It probes for a larger scale every 2000 steps, which costs
one."""
SKIPPED_AT_FIRST = 10
"""Skips that finding the first scale may take: each halves it."""


def diagnose(course: RunCourse, checks: Sequence[Check] | None = None) -> tuple[Finding, ...]:
    """Every finding of a run, the most severe first.

    Args:
        course: The run's course.
        checks: What to look for; None for everything.
    """
    wanted = CHECKS if checks is None else checks
    found = []
    for check in wanted:
        evidence = check(course)
        if evidence is not None:
            found.append(Finding(check.__name__, evidence, SEVERITY[check]))
    found.sort(key=_rank)
    return tuple(found)


def divergence(course: RunCourse) -> str | None:
    """The training loss became infinite or not a number, or rose and stayed up."""
    return _not_finite(course) or _risen(course)


def _not_finite(course: RunCourse) -> str | None:
    for point, loss in enumerate(course.losses):
        if not math.isfinite(loss):
            at = _step(course, point)
            return f"the training loss became {loss} at {course.counted} {at}"
    for reading in course.reports:
        if not math.isfinite(reading.loss):
            return f"the validation loss became {reading.loss} at {course.counted} {reading.step}"
    return None


def _risen(course: RunCourse) -> str | None:
    losses = course.losses
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
    at = _step(course, point)
    where = f"around {course.counted} {at}"
    return f"the training loss rose from {lowest:.3g} {where} to {last:.3g} at the end"


def overfitting(course: RunCourse) -> str | None:
    """The validation loss rises while the training loss falls."""
    if len(course.reports) < FEWEST_REPORTS:
        return None
    last = course.reports[-1]
    best = _best(course.reports)
    rise = last.loss - best.loss
    fall = best.train_loss - last.train_loss
    if rise <= OVERFIT_RISE * abs(best.loss):
        return None
    if fall <= OVERFIT_FALL * abs(best.train_loss):
        return None
    return (
        f"since {course.counted} {best.step} the validation loss rose "
        f"from {best.loss:.3g} to {last.loss:.3g} "
        f"while the training loss fell from {best.train_loss:.3g} to {last.train_loss:.3g}"
    )


def plateau(course: RunCourse) -> str | None:
    """The second half of the run hardly lowered the validation loss.

    Where that is overfitting, `overfitting` is the finding.
    """
    reports = course.reports
    if len(reports) < FEWEST_REPORTS:
        return None
    if overfitting(course) is not None:
        return None
    half = len(reports) // 2
    before = _best(reports[:half])
    after = _best(reports[half:])
    gain = before.loss - after.loss
    if gain >= PLATEAU_GAIN * abs(before.loss):
        return None
    reached = f"{before.loss:.3g} by {course.counted} {before.step}"
    return f"the validation loss was {reached}, and {after.loss:.3g} at best after"


def gradient_spikes(course: RunCourse) -> str | None:
    """Single gradients are far larger than the usual one."""
    norms = course.norms
    if len(norms) < FEWEST_POINTS:
        return None
    usual = _usual_norms(norms)
    spikes = [point for point, norm in enumerate(norms) if norm > SPIKE_RATIO * usual[point]]
    if not spikes:
        return None
    highest = max(spikes, key=lambda point: norms[point])
    count = f"{len(spikes)} spike{'s' if len(spikes) > 1 else ''}"
    at = _step(course, highest)
    return (
        f"the gradient norm was {norms[highest]:.3g} around step {at}, "
        f"usually {usual[highest]:.3g}; {count} above {SPIKE_RATIO:g} times that"
    )


def _usual_norms(norms: Sequence[float]) -> list[float]:
    """For each gradient norm the one that is usual there: the median of those around it, or that of
    the first quarter where it is greater."""
    quarter = len(norms) // 4
    first = median(norms[:quarter])
    usual = []
    for point in range(len(norms)):
        start = max(point - SPIKE_WINDOW, 0)
        end = point + SPIKE_WINDOW + 1
        around = median(norms[start:end])
        usual.append(max(first, around))
    return usual


def collapsed_gradients(course: RunCourse) -> str | None:
    """Gradients have all but vanished while most of the loss is left."""
    norms, losses = course.norms, course.losses
    if len(norms) < FEWEST_POINTS or len(losses) < FEWEST_POINTS:
        return None
    quarter = len(norms) // 4
    first = median(norms[:quarter])
    last = median(norms[-quarter:])
    loss_first = fmean(losses[:5])
    loss_last = fmean(losses[-5:])
    if last > COLLAPSE_RATIO * first or loss_last < COLLAPSE_LOSS * loss_first:
        return None
    return (
        f"the gradient norm fell from {first:.3g} to {last:.3g} "
        f"while the training loss is still {loss_last:.3g}"
    )


def memory_growth(course: RunCourse) -> str | None:
    """The memory in use grows from step to step, and keeps growing."""
    quarter = len(course.memory_bytes) // 4
    settled = course.memory_bytes[quarter:]
    readings = len(settled)
    if readings < FEWEST_REPORTS * 2:
        return None
    first, last = settled[0], settled[-1]
    grown = last - first
    if grown <= max(MEMORY_GROWTH * first, MEMORY_BYTES):
        return None
    rises = sum(after >= before for before, after in itertools.pairwise(settled))
    if rises < 0.75 * (readings - 1):
        return None
    half = settled[readings // 2]
    if last - half < grown / 4:
        return None
    in_mib = f"{first / MIB:.0f} to {last / MIB:.0f} MiB"
    return f"memory grew from {in_mib} and keeps growing"


def throughput_drop(course: RunCourse) -> str | None:
    """Samples per second fell for good. The first report is left out: a cold start is slow."""
    speeds = [reading.samples_per_second for reading in course.reports[1:]]
    if len(speeds) < FEWEST_REPORTS:
        return None
    third = max(len(speeds) // 3, 1)
    before = median(speeds[:-third])
    last = median(speeds[-third:])
    if last >= THROUGHPUT_DROP * before:
        return None
    return f"{last:.3g} {course.unit} a second at the end, {before:.3g} before"


def data_starvation(course: RunCourse) -> str | None:
    """The device waits for batches."""
    waited = course.waited_s
    if course.steps < FEWEST_POINTS or waited <= STARVATION_SHARE * course.trained_s:
        return None
    share = waited / course.trained_s
    return f"{share:.0%} of the training time ({waited:.3g} s) was spent waiting for batches"


def padding_waste(course: RunCourse) -> str | None:
    """Much of what is computed is padding."""
    if not course.cells:
        return None
    padding = 1 - course.tokens / course.cells
    if padding <= PADDING_SHARE:
        return None
    return (
        f"{padding:.0%} of what the model computed was padding; "
        "bucketing batches texts of similar length"
    )


def skipped_steps(course: RunCourse) -> str | None:
    """The fp16 loss scaler skipped more steps than finding its scale takes."""
    if course.skipped <= max(SKIPPED_AT_FIRST, SKIPPED_SHARE * course.steps):
        return None
    return (
        f"{course.skipped} of {course.steps} steps were skipped for infinite fp16 gradients; "
        "bf16 has none"
    )


SEVERITY: dict[Check, Severity] = {
    divergence: Severity.CRITICAL,
    overfitting: Severity.WARNING,
    plateau: Severity.NOTICE,
    gradient_spikes: Severity.WARNING,
    collapsed_gradients: Severity.WARNING,
    memory_growth: Severity.WARNING,
    throughput_drop: Severity.WARNING,
    data_starvation: Severity.WARNING,
    padding_waste: Severity.NOTICE,
    skipped_steps: Severity.WARNING,
}
"""Every check; a finding has the name of its check."""
CHECKS = tuple(SEVERITY)
_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.NOTICE)


def _rank(finding: Finding) -> int:
    return _ORDER.index(finding.severity)


def _best(reports: Sequence[Reading]) -> Reading:
    return min(reports, key=lambda reading: reading.loss)


def _step(course: RunCourse, point: int) -> int:
    return point * course.every + 1
