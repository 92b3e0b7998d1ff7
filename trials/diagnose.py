"""A run's health: what its records tell about how it trained, as named findings with their evidence.

Every check is a function from `trace.Records` to a finding or None, with its thresholds beside it. They are set so that
a healthy run has no findings: each says why it stands where it does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from statistics import fmean, median

from trials.contract import Finding, Severity
from trials.trace import Reading, Records

Check = Callable[[Records], Finding | None]

FEWEST_POINTS = 20
"""Points of a series below which its course says nothing: halves and quarters of less are single steps."""
FEWEST_REPORTS = 4
"""Reports below which a trend is two points and a line between them."""

DIVERGED_RATIO = 1.5
"""The last tenth's mean loss over the lowest tenth's. Batches are noisy, tenths are not: a run that ends with half as
much loss again as it had reached has lost what it learnt."""
DIVERGED_MARGIN = 0.05
"""And by how much it must be higher: near a loss of 0, one hard batch makes any ratio."""
PLATEAU_GAIN = 0.01
"""The second half of a run that lowers the validation loss by less than this share was not worth its cost."""
OVERFIT_RISE = 0.05
"""Validation loss above its best, as a share; smaller rises are the noise of small validation sets."""
OVERFIT_FALL = 0.05
"""Training loss fallen meanwhile, as a share: if it stands still, the model is not fitting the training data closer."""
SPIKE_RATIO = 20.0
"""A gradient norm over the usual one: the median around it, or that of the first quarter where that is more, since
what is learnt leaves small gradients beside which any batch looks large. Batches of a healthy run differ by a few
times; 20 times is what clipping is for."""
SPIKE_WINDOW = 10
"""Points on either side that a spike is compared with."""
COLLAPSE_RATIO = 1e-3
"""Gradient norms at the end over those at the beginning; below it steps change nothing any more."""
COLLAPSE_LOSS = 0.5
"""While at least this share of the first loss is left: a model that has learnt its data also ends with small ones."""
MEMORY_GROWTH = 0.1
"""Memory grown since the first quarter of the run (in which caches fill), as a share."""
MEMORY_BYTES = 32 << 20
"""And in bytes: allocators keep a few megabytes for later."""
THROUGHPUT_DROP = 0.7
"""Samples per second in the last third of the reports over those before; clocks and neighbours make 10 or 20 %."""
STARVATION_SHARE = 0.3
"""Time waiting for batches over training time: from here on, faster data is worth more than a faster device."""
PADDING_SHARE = 0.4
"""Padding among what was computed. Bucketing leaves a tenth; at this share two of five products are for nothing."""
SKIPPED_SHARE = 0.02
"""Steps skipped by the fp16 loss scaler. It probes for a larger scale every 2000 steps, which costs one."""
SKIPPED_AT_FIRST = 10
"""Skips that finding the first scale may take: each halves it."""


def diagnose(records: Records, checks: Sequence[Check] | None = None) -> tuple[Finding, ...]:
    """Every finding of a run, the most severe first.

    Args:
        records: The run's course.
        checks: What to look for; None for everything.
    """
    found = [finding for check in (CHECKS if checks is None else checks) if (finding := check(records)) is not None]
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity)))


def divergence(records: Records) -> Finding | None:
    """The training loss became infinite or no number, or rose and stayed up."""
    losses = records.losses
    broken = next((i for i, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if broken is not None:
        evidence = f"the training loss became {losses[broken]} at {records.counted} {_step(records, broken)}"
        return Finding("divergence", evidence, Severity.CRITICAL)
    blind = next((reading for reading in records.reports if not math.isfinite(reading.loss)), None)
    if blind is not None:
        evidence = f"the validation loss became {blind.loss} at {records.counted} {blind.step}"
        return Finding("divergence", evidence, Severity.CRITICAL)
    if len(losses) < FEWEST_POINTS:
        return None
    tenth = len(losses) // 10
    means = [fmean(losses[i : i + tenth]) for i in range(0, len(losses) - tenth + 1, tenth)]
    lowest, last = min(means), fmean(losses[-tenth:])
    if last <= lowest + DIVERGED_MARGIN or last <= DIVERGED_RATIO * lowest:
        return None
    at = _step(records, means.index(lowest) * tenth)
    evidence = f"the training loss rose from {lowest:.3g} around {records.counted} {at} to {last:.3g} at the end"
    return Finding("divergence", evidence, Severity.CRITICAL)


def overfitting(records: Records) -> Finding | None:
    """The validation loss rises while the training loss falls."""
    if len(records.reports) < FEWEST_REPORTS:
        return None
    last, best = records.reports[-1], _best(records.reports)
    rise, fall = last.loss - best.loss, best.train_loss - last.train_loss
    if rise <= OVERFIT_RISE * abs(best.loss) or fall <= OVERFIT_FALL * abs(best.train_loss):
        return None
    evidence = (
        f"since {records.counted} {best.step} the validation loss rose from {best.loss:.3g} to {last.loss:.3g} "
        f"while the training loss fell from {best.train_loss:.3g} to {last.train_loss:.3g}"
    )
    return Finding("overfitting", evidence, Severity.WARNING)


def plateau(records: Records) -> Finding | None:
    """The second half of the run hardly lowered the validation loss; overfitting is told instead where it is that."""
    if len(records.reports) < FEWEST_REPORTS or overfitting(records) is not None:
        return None
    half = len(records.reports) // 2
    before, after = _best(records.reports[:half]), _best(records.reports[half:])
    if before.loss - after.loss >= PLATEAU_GAIN * abs(before.loss):
        return None
    reached = f"{before.loss:.3g} by {records.counted} {before.step}"
    evidence = f"the validation loss was {reached}, and {after.loss:.3g} at best after"
    return Finding("plateau", evidence, Severity.NOTICE)


def gradient_spikes(records: Records) -> Finding | None:
    """Single gradients are far larger than the usual one."""
    if len(records.norms) < FEWEST_POINTS:
        return None
    norms, first = records.norms, median(records.norms[: len(records.norms) // 4])
    usual = [max(first, median(norms[max(i - SPIKE_WINDOW, 0) : i + SPIKE_WINDOW + 1])) for i in range(len(norms))]
    spikes = [i for i, norm in enumerate(norms) if norm > SPIKE_RATIO * usual[i]]
    if not spikes:
        return None
    highest = max(spikes, key=lambda i: norms[i])
    evidence = (
        f"the gradient norm was {norms[highest]:.3g} around step {_step(records, highest)}, usually "
        f"{usual[highest]:.3g}; {len(spikes)} spike{'s' if len(spikes) > 1 else ''} above {SPIKE_RATIO:g} times that"
    )
    return Finding("gradient_spikes", evidence, Severity.WARNING)


def collapsed_gradients(records: Records) -> Finding | None:
    """Gradients have all but vanished with most of the loss still there."""
    norms, losses = records.norms, records.losses
    if len(norms) < FEWEST_POINTS or len(losses) < FEWEST_POINTS:
        return None
    quarter = len(norms) // 4
    first, last = median(norms[:quarter]), median(norms[-quarter:])
    loss_first, loss_last = fmean(losses[:5]), fmean(losses[-5:])
    if last > COLLAPSE_RATIO * first or loss_last < COLLAPSE_LOSS * loss_first:
        return None
    evidence = f"the gradient norm fell from {first:.3g} to {last:.3g} while the training loss is still {loss_last:.3g}"
    return Finding("collapsed_gradients", evidence, Severity.WARNING)


def memory_growth(records: Records) -> Finding | None:
    """The memory in use grows from step to step, and goes on growing."""
    settled = records.memory_bytes[len(records.memory_bytes) // 4 :]
    if len(settled) < FEWEST_REPORTS * 2:
        return None
    grown = settled[-1] - settled[0]
    rising = sum(b >= a for a, b in itertools.pairwise(settled)) >= 0.75 * (len(settled) - 1)
    goes_on = settled[-1] - settled[len(settled) // 2] >= grown / 4
    if grown <= max(MEMORY_GROWTH * settled[0], MEMORY_BYTES) or not rising or not goes_on:
        return None
    evidence = f"memory grew from {settled[0] / (1 << 20):.0f} to {settled[-1] / (1 << 20):.0f} MiB and goes on growing"
    return Finding("memory_growth", evidence, Severity.WARNING)


def throughput_drop(records: Records) -> Finding | None:
    """Samples per second fell for good; the first report is left out, since a cold start is slow."""
    speeds = [reading.samples_per_second for reading in records.reports[1:]]
    if len(speeds) < FEWEST_REPORTS:
        return None
    third = max(len(speeds) // 3, 1)
    before, last = median(speeds[:-third]), median(speeds[-third:])
    if last >= THROUGHPUT_DROP * before:
        return None
    evidence = f"{last:.3g} {records.unit} a second at the end, {before:.3g} before"
    return Finding("throughput_drop", evidence, Severity.WARNING)


def data_starvation(records: Records) -> Finding | None:
    """The device waits for batches."""
    if records.steps < FEWEST_POINTS or records.waited_s <= STARVATION_SHARE * records.trained_s:
        return None
    share = records.waited_s / records.trained_s
    evidence = f"{share:.0%} of the training time ({records.waited_s:.3g} s) went into waiting for batches"
    return Finding("data_starvation", evidence, Severity.WARNING)


def padding_waste(records: Records) -> Finding | None:
    """Much of what is computed is padding."""
    padding = 1 - records.tokens / records.cells if records.cells else 0.0
    if padding <= PADDING_SHARE:
        return None
    evidence = f"{padding:.0%} of what the model computed was padding; bucketing batches texts of similar length"
    return Finding("padding_waste", evidence, Severity.NOTICE)


def skipped_steps(records: Records) -> Finding | None:
    """The fp16 loss scaler skipped more steps than finding its scale takes."""
    if records.skipped <= max(SKIPPED_AT_FIRST, SKIPPED_SHARE * records.steps):
        return None
    evidence = f"{records.skipped} of {records.steps} steps were skipped for infinite fp16 gradients; bf16 has none"
    return Finding("skipped_steps", evidence, Severity.WARNING)


CHECKS = (
    divergence, overfitting, plateau, gradient_spikes, collapsed_gradients, memory_growth, throughput_drop,
    data_starvation, padding_waste, skipped_steps,
)  # fmt: skip
"""Every check; a finding has the name of its check."""

_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.NOTICE)


def _best(reports: Sequence[Reading]) -> Reading:
    return min(reports, key=lambda reading: reading.loss)


def _step(records: Records, point: int) -> int:
    """The first step of a point, from 1."""
    return point * records.every + 1
