"""Parameters without effect: trainings that differ in them and report the same to the last digit.

Equal reports are evidence only where something was trained between them: before the first update,
or by guessing, configurations that differ may well report the same.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hpsearch.domain.numbers import count, number

FIRST_TRIALS = 30  # are compared, and no more
FEWEST = 3  # trials that must be the same
MORE_COARSE = 2  # further ones where their values are so coarse that chance may equal them
COARSE = 1_000_000
"""The denominator of a share, such as an accuracy, or of a number with few digits."""

_MEASURES = re.compile(
    r"(?<![a-z])(time|timestamp|date|eta|elapsed|duration|seconds?|secs?|s|ms|minutes?|hours?|took"
    r"|speed|throughput|fps|it_s|memory|mem|[mg]i?b|gpu|cpu|util\w*)(?![a-z])",
    re.IGNORECASE,
)
"""In the names of metrics that differ between two equal trainings."""


@dataclass(frozen=True)
class TrialReports:
    """The reports of a training: its parameters, and its metrics by the resource."""

    params: Mapping[str, Any]
    reports: Mapping[float, Mapping[str, float]]


@dataclass(frozen=True)
class Same:
    """The reports that two trainings share, which are the same."""

    until: float  # the highest resource of them
    in_full: bool  # whether that is the full budget
    distinct: int  # how many of the reports differ from each other
    is_fine: bool  # whether a value of them has many digits

    @property
    def is_certain(self) -> bool:
        """They were trained in between, and chance cannot have made them equal."""
        is_trained = self.in_full or self.distinct > 1
        return is_trained and (self.is_fine or self.distinct > 2)


@dataclass(frozen=True)
class NoEffect:
    """Parameters that have made no difference in a study."""

    names: Sequence[str]
    trials: int  # how many were compared
    is_all: bool  # whether nothing else is searched
    is_certain: bool  # whether chance cannot have made their values equal
    metric: str
    value: float  # the first objective in the latest report that was compared

    @property
    def warning(self) -> str:
        """The warning in words."""
        names, trials = ", ".join(self.names), count(self.trials, "trial")
        same = f"{self.metric} {number(self.value)}, the same to the last digit"
        if not self.is_certain:
            return (
                f"no difference between {trials} with different values of {names}: all have "
                f"reported {same}; the metric is too coarse to compare them, or the values do not "
                "reach the program"
            )
        if self.is_all:
            return (
                f"PARAMETERS WITHOUT EFFECT: {trials} with different values of {names} have all "
                f"reported {same}: the values do not reach the program, or the metric does not "
                "depend on them; until that is mended, no trial is better than another"
            )
        return (
            f"PARAMETER WITHOUT EFFECT: wherever {names} alone differed, trials have reported the "
            "same to the last digit: it does not reach the program, or makes no difference so far"
        )


def _same(
    one: TrialReports, other: TrialReports, objectives: Collection[str], total: float
) -> Same | None:
    """The reports that two trainings share; None if there are none, or they differ. Metrics that
    measure time or a machine count only as objectives."""
    distinct: set[tuple[Any, ...]] = set()
    values: set[float | str] = set()
    shared = sorted(one.reports.keys() & other.reports.keys())
    for at in shared:
        left, right = (_compared(each.reports[at], objectives) for each in (one, other))
        if left != right or not left:
            return None
        distinct.add(tuple(left.items()))
        values.update(left.values())
    if not shared:
        return None
    is_fine = any(isinstance(value, float) and not _is_coarse(value) for value in values)
    return Same(shared[-1], shared[-1] >= total, len(distinct), is_fine)


def _compared(metrics: Mapping[str, float], objectives: Collection[str]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for name in sorted(metrics):
        if name in objectives or not _MEASURES.search(name):
            value = metrics[name]
            found[name] = value if math.isfinite(value) else str(value)
    return found


def _is_coarse(value: float) -> bool:
    return float(Fraction(value).limit_denominator(COARSE)) == value


def no_effect(
    trainings: Sequence[TrialReports], objectives: Sequence[str], total: float, fewest: int = FEWEST
) -> NoEffect | None:
    """The parameters that have made no difference in the first trials of a study, which report up
    to `total`: all of them, or else those that have made none wherever they alone differed; None
    without any. `fewest` trials must be the same: 2 suffice where they have the same seed."""
    compared = [each for each in trainings[:FIRST_TRIALS] if each.reports]
    names = list(dict.fromkeys(name for each in compared for name in each.params))
    everything = _equal_pairs(compared, names, objectives, total)
    if sum(equal.is_certain for equal in everything) >= fewest - 1:
        return _found(compared, names, names, objectives[0])
    if sum(equal.in_full for equal in everything) >= fewest + MORE_COARSE - 1:
        return replace(_found(compared, names, names, objectives[0]), is_certain=False)
    alone = []
    for name in names:
        pairs = _equal_pairs(compared, [name], objectives, total)
        if sum(equal.is_certain for equal in pairs) >= fewest - 1:
            alone.append(name)
    return _found(compared, alone, names, objectives[0]) if alone else None


def _equal_pairs(
    trainings: Sequence[TrialReports], names: Sequence[str], objectives: Sequence[str], total: float
) -> list[Same]:
    """The reports of trainings that differ in these parameters alone; none if any two differ."""
    groups: dict[str, list[TrialReports]] = defaultdict(list)
    for training in trainings:
        others = {name: value for name, value in training.params.items() if name not in names}
        groups[repr(sorted(others.items()))].append(training)
    found = []
    for group in groups.values():
        longest = max(group, key=lambda each: max(each.reports))
        for training in group:
            if training.params == longest.params:
                continue
            equal = _same(longest, training, objectives, total)
            if equal is None:
                return []
            found.append(equal)
    return found


def _found(
    trainings: Sequence[TrialReports], names: Sequence[str], searched: Sequence[str], metric: str
) -> NoEffect:
    longest = max(trainings, key=lambda each: max(each.reports))
    value = longest.reports[max(longest.reports)].get(metric, math.nan)
    is_all = len(names) == len(searched)
    return NoEffect(names, len(trainings), is_all, True, metric, value)
