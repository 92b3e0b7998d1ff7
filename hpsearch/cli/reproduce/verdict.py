"""What a repetition is compared by, and what is printed of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hpsearch.cli.reproduce.comparison import ComparedReport, Comparison, Difference
from hpsearch.cli.reproduce.course import OF_THE_MACHINE
from hpsearch.domain.lifecycle import State
from hpsearch.store.reading.queries import TrialDetail
from hpsearch.words.numbers import count

MOST_SHOWN = 3
"""How many metrics of a report are shown that differ."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for.

    Args:
        until: The resource up to which to train; None for as far as the trial went.
        tolerance: The share by which metrics may differ.
        metric: The only metric to compare; None for all but time, memory and energy.
    """

    until: float | None
    tolerance: float
    metric: str | None


def line_of(report: ComparedReport, tolerance: float) -> str:
    """A report beside the one on record, in a line."""
    at = f"at {report.resource:g}"
    if report.missing is not None:
        return f"{at}: different: {report.missing}"
    if not report.differences:
        return f"{at}: the same, {count(report.metrics, 'metric')} bit for bit"
    differ = [_difference(each) for each in report.differences[:MOST_SHOWN]]
    more = len(report.differences) - len(differ)
    if more:
        differ.append(f"and {count(more, 'metric')} more")
    word = "the same" if report.relative <= tolerance else "different"
    return f"{at}: {word}: {', '.join(differ)}"


def _difference(of: Difference) -> str:
    if of.recorded is None or of.now is None:
        where = "now" if of.now is None else "on record"
        return f"{of.metric} is missing {where}"
    return f"{of.metric} {of.now!r} instead of {of.recorded!r} ({share(of.relative)})"


def share(relative: float) -> str:
    """A relative difference, for people."""
    return "no number" if relative == math.inf else f"{relative:.1e} of it"


def verdict(
    detail: TrialDetail, comparison: Comparison, wanted: Wanted, found: Sequence[str]
) -> list[str]:
    """The lines that say whether the trial is the same, and why not.

    Args:
        detail: The trial.
        comparison: It beside its repetition.
        wanted: What counts as the same.
        found: What may be the cause of a difference, the most likely first.
    """
    trial = detail.trial
    how_far = f"trial {trial.number}, {trial.state.value}"
    compared = count(len(comparison.reports), "report")
    lines = [f"{how_far}: {compared} compared"]
    pauses = len(comparison.course.parts) - 1
    if pauses:
        lines[0] += (
            f"; paused and continued {'once' if pauses == 1 else f'{pauses} times'}, as it was"
        )
    if comparison.is_same(wanted.tolerance):
        lines.append(_same(comparison))
    else:
        lines += _different(comparison, wanted.tolerance, found)
    return [*lines, *_not_repeated(detail, comparison)]


def _same(comparison: Comparison) -> str:
    error = comparison.course.error
    if error is not None and not comparison.reports:
        return f"THE SAME: it failed in the same way ({error[0].value}: {error[1]})"
    failed = "" if error is None else f", and it failed in the same way ({error[0].value})"
    if comparison.relative == 0:
        return f"THE SAME, bit for bit{failed}"
    return f"THE SAME within {share(comparison.relative)}{failed}"


def _different(comparison: Comparison, tolerance: float, found: Sequence[str]) -> list[str]:
    lines = []
    first = comparison.first_beyond(tolerance)
    if first is not None:
        largest = comparison.relative
        by = "" if largest == math.inf else f"; the largest difference is {share(largest)}"
        lines.append(f"DIFFERENT from {first.resource:g} on{by}")
        if first.missing is not None:
            lines.append(line_of(first, tolerance))
    if comparison.ending is not None:
        lines.append(f"DIFFERENT in its end: {comparison.ending}")
    if not found:
        lines.append("nothing that is recorded has changed: look for chance in the training's code")
        return lines
    lines.append("why it may differ, the most likely cause first:")
    lines += [f"  {place}. {each}" for place, each in enumerate(found, start=1)]
    return lines


def _not_repeated(detail: TrialDetail, comparison: Comparison) -> list[str]:
    """What of the trial was not repeated, and why."""
    trial = detail.trial
    last = max((float(each["resource"]) for each in detail.reports), default=0.0)
    if comparison.course.end < last:
        return [f"only up to {comparison.course.end:g}: the trial reported until {last:g}"]
    if trial.error_kind in OF_THE_MACHINE:
        return [f"its failure was not repeated, which was its machine's: {trial.error_kind.value}"]
    if trial.state is State.RUNNING:
        return ["it still runs: what it reports after this is not compared"]
    return []
