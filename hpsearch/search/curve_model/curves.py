"""The evidence of trials for the model of learning curves.

It is each trial's value at a few marks along its curve, and its latest value, so that paused and
pruned trials count too. Resources are shares of the full trial budget. Below the full budget losses
count beside the objective (`blend`). Values are stretched at the good end, where
differences matter.
"""

import bisect
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import fmean

import numpy as np

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial, sign_of
from hpsearch.search.curve_model.blend import Blend, Row, weights_of
from hpsearch.search.curve_model.encoding import Floats, SpaceEncoding
from hpsearch.search.curve_model.model import Evidence, Points

Losses = tuple[Sequence[str], Sequence[str]]  # names of a validation loss, and of a training loss
MOST_ROWS = 160  # rows of evidence: the cost of a decision grows with their cube
HORIZON = 1 / 7
"""The least training after which configurations are compared, as a share of the full budget."""
MARKS = (1 / 17, 3 / 17, 9 / 17)
"""The shares of the full budget at which the values of a curve are evidence."""
RANGE = 50.0  # tau is 1 at the full budget, and 0 at 1/RANGE of it and below
DIGITS = 6
"""Digits of a share of the full budget, so that levels which are the same in two units look so."""
FLOOR, WORST = 0.1, 20.0
"""The warp's parameters: the stretch of the good end (smaller is stronger), and the cut of the bad
end."""


@dataclass(frozen=True, slots=True)
class ShownCurve:
    """The curve that one trial showed; values are minimised."""

    number: int
    point: Floats  # (parameters,) Its configuration
    shares: tuple[float, ...]  # of the full budget, ascending
    values: tuple[float, ...]  # the objective there
    best: float
    outside: bool
    """True if it failed or exceeds a limit, so that configurations like it are useless."""
    rows: tuple[Row, ...] = ()
    """The objective and the losses there; empty where the trial reports no loss."""

    @property
    def goodness(self) -> tuple[bool, float, int]:
        """The key that curves are ordered by: the best one has the least."""
        return self.outside, self.best, self.number

    @property
    def forecasts(self) -> Iterator[tuple[float, Row, float, float]]:
        """Each share before the last one with the row there, and the last share and value, which
        these were followed by."""
        end = self.shares[-1], self.values[-1]
        for share, row in zip(self.shares[:-1], self.rows, strict=False):
            yield share, row, *end


@dataclass(frozen=True)
class Warp:
    """Stretches the good end: ln(1 + share / 0.1), where the share is 0 at the best value `low` and
    1 at `middle`. Better values go on in a straight line, so that nothing limits what may come."""

    low: float
    middle: float

    def __call__(self, values: Floats) -> Floats:
        """Warped values; what is not finite is worst."""
        values = np.asarray(values, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):  # far from the middle, or not finite
            share = (values / 4 - self.low / 4) / max(self._quarter, 2.5e-13)
        is_known = np.isfinite(values) & ~np.isnan(share)
        share = np.where(is_known, share, WORST)
        steps = np.clip(share, -WORST, WORST) / FLOOR
        beyond_best = steps < 0
        above_zero = np.maximum(steps, 0)
        return np.where(beyond_best, steps, np.log1p(above_zero))

    def undone(self, warped: Floats) -> Floats:
        """The values that warp to these."""
        with np.errstate(over="ignore"):
            steps = np.where(warped < 0, warped, np.expm1(np.maximum(warped, 0)))
            return np.asarray(self.low / 4 + FLOOR * steps * self._quarter) * 4

    @property
    def _quarter(self) -> float:
        """A quarter of the span: the ends of all floats are further apart than a float can be."""
        return self.middle / 4 - self.low / 4


class CurveReader:
    """Reads the curves of a study's trials, each one again when it has changed.

    Args:
        total: The full trial budget, in its unit.
        losses: Names of a validation loss, and of a training loss; the first one of each that is
            reported counts beside the objective.
    """

    are_means = False
    """Values are means over folds or seeds: the latest of a trial is its best, and all are as if
    the later folds were included, by what these change in other trials."""

    def __init__(
        self, encoding: SpaceEncoding, history: History, total: float, losses: Losses = ((), ())
    ) -> None:
        self._shifts: Mapping[float, float] = {}
        self._encoding = encoding
        self._history = history
        self._total = total
        self._losses = losses
        self._blend = Blend()
        self._sign = sign_of(history.study.directions[0])
        self._clock = 0
        self.known: dict[int, ShownCurve] = {}  # by trial, its curve at the last call of `curves`
        self._ordered: list[ShownCurve] = []  # all of them, the best first
        self.values = 0  # the number of values of all curves
        self._bests: list[float] = []
        self._worsts: list[float] = []
        """The best and the worst finite value of each curve, ascending."""
        self.changes = 0  # the number of changes of all curves

    def curves(self) -> Sequence[ShownCurve]:
        """The curves of all trials with a finite value, those that keep the limits first, each by
        its best value; and of those that failed. The list changes with the next call."""
        trials = self._history.trials
        self._clock, changed = self._history.shown_since(self._clock)
        if self.are_means and changed:
            shifts, self._shifts = self._shifts, {}
            self._shifts = shifts_of(map(self._values, trials))
            changed = list(range(len(trials))) if self._shifts != shifts else changed
        for number in changed:
            before = self.known.get(number)
            now = self.read(trials[number])
            if _shown(before) != _shown(now):
                self._replace(before, now)
        return self._ordered

    def _replace(self, before: ShownCurve | None, now: ShownCurve | None) -> None:
        self.changes += 1
        if before is not None:
            self._leave(before)
        if now is not None:
            self._enter(now)

    def _leave(self, curve: ShownCurve) -> None:
        place = bisect.bisect_left(self._ordered, curve.goodness, key=_goodness)
        del self._ordered[place], self.known[curve.number]
        self.values -= len(curve.values)
        for ends, end in self._ends(curve):
            del ends[bisect.bisect_left(ends, end)]
        for share, row in zip(curve.shares, curve.rows, strict=False):
            self._blend.leave(share, row)

    def _enter(self, curve: ShownCurve) -> None:
        bisect.insort(self._ordered, curve, key=_goodness)
        self.known[curve.number] = curve
        self.values += len(curve.values)
        for ends, end in self._ends(curve):
            bisect.insort(ends, end)
        for share, row in zip(curve.shares, curve.rows, strict=False):
            self._blend.enter(share, row)

    def _ends(self, curve: ShownCurve) -> list[tuple[list[float], float]]:
        finite = [value for value in curve.values if math.isfinite(value)]
        return [(self._bests, min(finite)), (self._worsts, max(finite))] if finite else []

    @property
    def seen(self) -> tuple[float, float]:
        """The best and the worst value of all curves, of which one has a value."""
        return self._bests[0], self._worsts[-1]

    def blended(self, curves: Sequence[ShownCurve]) -> list[ShownCurve]:
        """Curves with the values that count, in which the losses have their part."""
        weights = weights_of(chain.from_iterable(curve.forecasts for curve in curves))
        blended = []
        for curve in curves:
            if curve.rows:
                shown = zip(curve.shares, curve.rows, strict=True)
                values = (self._blend.value(share, row, weights) for share, row in shown)
                curve = replace(curve, values=tuple(values))
            blended.append(curve)
        return blended

    def read(self, trial: Trial) -> ShownCurve | None:
        """A trial's values at the marks it has passed, and its latest; None if it has none."""
        if not trial.params or not trial.is_evidence:
            return None
        point = self._encoding.point(trial.params)
        number = trial.number
        if trial.error_kind is not None and trial.error_kind.of_configuration:
            # Wherever curves are compared, it is as bad as anything that was seen.
            nothing = math.inf, math.inf
            horizons = (HORIZON, 1.0)
            return ShownCurve(number, point, horizons, nothing, math.inf, outside=True)
        values = self._values(trial)
        if not values:
            return None
        shares = at_marks(sorted(values))
        shown = tuple(values[share] for share in shares)
        best = shown[-1] if self.are_means else min(values.values())
        outside = trial.violation > 0
        rows = self._rows(trial, shares, shown)
        return ShownCurve(number, point, tuple(shares), shown, best, outside, rows)

    def _rows(
        self, trial: Trial, shares: Sequence[float], values: Sequence[float]
    ) -> tuple[Row, ...]:
        """The objective and the losses at some shares; nothing if the trial reports no loss."""
        first = next(iter(trial.reports.values()), None)
        reported = () if first is None else first.metrics
        chosen = [next((each for each in some if each in reported), "") for some in self._losses]
        if not any(chosen):
            return ()
        metrics = {self._share(at): report.metrics for at, report in trial.reports.items()}
        rows = []
        for share, value in zip(shares, values, strict=True):
            there = metrics.get(share, {})
            rows.append((value, *(there.get(name, math.nan) for name in chosen)))
        return tuple(rows)

    def _share(self, resource: float) -> float:
        return round(resource / self._total, DIGITS)

    def _values(self, trial: Trial) -> dict[float, float]:
        values = {}
        for resource, report in trial.reports.items():
            value = report.value
            if value is not None and math.isfinite(value):
                share = self._share(resource)
                values[share] = self._sign * value + self._shifts.get(share, 0.0)
        final = trial.value
        if values or trial.state is not State.COMPLETE or final is None:
            return values
        return {1.0: self._sign * final}


def shifts_of(curves: Iterable[Mapping[float, float]]) -> dict[float, float]:
    """What later folds add to a mean over the first ones, by its share: the sum of what each has
    added in the trials that went on to it."""
    added: defaultdict[float, list[float]] = defaultdict(list)
    for curve in curves:
        for before, share in pairwise([0.0, *sorted(curve)]):
            added[share] += [curve[share] - curve[before]] if before else []
    found, total = {}, 0.0
    for share in sorted(added, reverse=True):
        found[share] = total
        total += fmean(added[share] or [0.0])
    return found


def at_marks(shares: Sequence[float]) -> list[float]:
    """The last of ascending shares up to each mark, and the last one of all."""
    chosen = {shares[-1]}
    for mark in MARKS:
        place = bisect.bisect_right(shares, round(mark, DIGITS)) - 1
        chosen.add(shares[max(0, place)])
    return sorted(chosen)


def _shown(curve: ShownCurve | None) -> str:
    """A text that differs if curves do; NaN is equal to itself in it."""
    return "" if curve is None else repr((curve.shares, curve.values, curve.rows, curve.goodness))


def _goodness(curve: ShownCurve) -> tuple[bool, float, int]:
    return curve.goodness


def seen_of(curves: Sequence[ShownCurve]) -> int:
    """The number of curves, the best first, that have a value; the others failed."""
    return bisect.bisect_left(curves, True, key=lambda curve: math.isinf(curve.best))


def warp_of(curves: Sequence[ShownCurve]) -> Warp:
    """The warp between the best value and the middle one, of curves with the best first; those that
    exceed a limit count as the worst value that was seen."""
    seen = seen_of(curves)
    inside = bisect.bisect_left(curves, True, key=lambda curve: curve.outside)
    last_ones = [curves[place - 1].best for place in {inside, seen} if place > 0]
    worst = max(last_ones)

    def at(place: int) -> float:
        return curves[place].best if place < inside else worst

    middle = (at((seen - 1) // 2) + at(seen // 2)) / 2
    return Warp(at(0), middle)


def evidence_of(
    curves: Sequence[ShownCurve],
    warp: Warp,
    encoding: SpaceEncoding,
    counting: Callable[[Sequence[ShownCurve]], Sequence[ShownCurve]] = lambda curves: curves,
    most: int = MOST_ROWS,
) -> tuple[Evidence, float]:
    """The rows that the model is shown, and the mean that was taken off their values.

    Args:
        counting: Puts the values that count into curves; those of the objective without it.
    """
    shown, firsts = zip(*_chosen(curves, most), strict=True)
    counted = counting(shown)
    chosen = list(zip(counted, firsts, strict=True))
    configurations = np.array([curve.point for curve in counted])
    features = encoding.features(configurations)
    rows = [len(curve.values) - since for curve, since in chosen]
    numbers = np.repeat([curve.number for curve in counted], rows)
    outside = np.repeat([curve.outside for curve in counted], rows)
    shares = np.concatenate([curve.shares[since:] for curve, since in chosen])
    values = np.concatenate([curve.values[since:] for curve, since in chosen])
    worst = values.max(where=np.isfinite(values), initial=warp.middle)
    values = np.minimum(values, worst)
    # A useless configuration is never shown as better than the middle, so that it attracts no
    # proposals.
    useless = np.maximum(values, warp.middle)
    z = warp(np.where(outside, useless, values))
    mean = z.mean()
    x = np.repeat(features, rows, axis=0)
    points = Points(x, tau_of(shares), numbers)
    return Evidence(points, z - mean), float(mean)


def _chosen(curves: Sequence[ShownCurve], most: int) -> list[tuple[ShownCurve, int]]:
    """Curves, each with the index of the first value that is a row: 0 for the best trials, up to
    half of the rows; the last index for the others, which are chosen evenly by rank."""
    # Every curve has a row at least, so that no more of them need to be counted.
    lengths = [len(curve.values) for curve in curves[: most + 1]]
    if sum(lengths) <= most:
        return [(curve, 0) for curve in curves]
    rows = np.cumsum(lengths)
    best = int(np.searchsorted(rows, most // 2, side="right"))
    left = most - sum(lengths[:best])
    others = len(curves) - best
    ranks = np.linspace(best, len(curves) - 1, min(left, others))
    chosen = [(curve, 0) for curve in curves[:best]]
    for rank in np.unique(ranks.round()):
        other = curves[int(rank)]
        latest = len(other.values) - 1
        chosen.append((other, latest))
    return chosen


def tau_of(shares: Floats) -> Floats:
    """(n,) The model's axis of time, from 0 to 1: the logarithm of shares of the full budget."""
    above_zero = np.maximum(shares, 1e-9)
    tau = 1 + np.log(above_zero) / math.log(RANGE)
    return np.asarray(np.maximum(tau, 0.0))
