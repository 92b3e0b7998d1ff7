"""The forecast of the values that trials will have reached at the full budget.

One model serves the whole search of a study, with any sampler. It is fitted again as the evidence
grows, and its hyperparameters are kept in the study's records, so that a driver that resumes the
study expects the same.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from hpsearch.domain.history import History
from hpsearch.domain.records import sign_of
from hpsearch.search.curve_model.curves import (
    MOST_ROWS,
    CurveReader,
    Losses,
    ShownCurve,
    Warp,
    evidence_of,
    seen_of,
    warp_of,
)
from hpsearch.search.curve_model.earlier import EarlierStudies, faded
from hpsearch.search.curve_model.encoding import Floats, SpaceEncoding
from hpsearch.search.curve_model.model import CurveModel, Evidence, Points, Posterior
from hpsearch.search.ranking.metric_bounds import bounds_of
from hpsearch.search.ranking.repeats import REACH

LEAST = 4  # the fewest trials with a value for which there is a forecast
FIT_FROM = 8
FIT_GROWTH = 1.25
"""Hyperparameters are fitted at `FIT_FROM` values, and again after growth by this factor."""
DOUBT, DOUBTED = 2.0, 8
"""The factor by which the model's standard deviations are assumed to be too small, and the number
of values that this assumption is worth: both a choice, of which no measurement is kept."""
WIDER = 1.4
"""The factor by which ends deviate more than the surprises of a study show, which are of values
between others. All ends of a study deviate alike in part, so that differences between them do not
(docs/measured/forecasts.md)."""
SURPRISE = 6.0  # the standard deviations at which a single surprise is cut off
FITTED = "hpsearch:curve_model"
"""System attribute of a study: the hyperparameters, and the number of values they are fitted to."""


@dataclass(frozen=True)
class Outlook:
    """The forecast at one moment."""

    curves: Sequence[ShownCurve]  # of all trials, the best first; as `known`, as they are now
    known: Mapping[int, ShownCurve]  # by trial, its curve
    seen: tuple[float, float]  # the best and the worst value of all curves
    warp: Warp
    level: float  # the mean that was taken off the stretched values
    posterior: Posterior  # the model that has seen the curves
    encoding: SpaceEncoding
    sign: float  # -1 where the objective is maximised, so that less is always better here
    agreements: Sequence[float] = ()  # (studies,) Of each earlier study with this one
    metric: str = ""

    def in_full(self, numbers: Sequence[int]) -> tuple[Floats, Floats]:
        """(n,) each: mean and standard deviation of trials' warped values at the full budget."""
        means, deviations = self.posterior.predict(self.ends(numbers))
        return means, WIDER * self.doubt * deviations

    def ends(self, numbers: Sequence[int]) -> Points:
        """The places of trials' values at the full budget."""
        points = np.array([self.known[number].point for number in numbers])
        features = self.encoding.features(points)
        taus = np.ones(len(numbers))
        return Points(features, taus, np.array(numbers))

    @cached_property
    def doubt(self) -> float:
        """The factor by which the model's standard deviations are too small.

        It is the root mean square of the surprises of the evidence: the distances of each trial's
        last value from its prediction by the rest, in standard deviations. A few such values are
        assumed at first.
        """
        trial = self.posterior.trial
        goes_on = trial[1:] == trial[:-1]
        is_last = np.append(~goes_on, True)
        has_earlier = np.append(False, goes_on)
        surprises = self.posterior.surprises()
        chosen = surprises[is_last & has_earlier]
        cut_off = np.minimum(np.abs(chosen), SURPRISE)
        squares = cut_off**2
        total = float(squares.sum())
        total += DOUBTED * DOUBT**2
        count = len(squares) + DOUBTED
        mean_square = total / count
        return max(1.0, math.sqrt(mean_square))

    @np.errstate(over="ignore")  # between losses at both ends of all floats
    def values(self, numbers: Sequence[int]) -> list[tuple[float, float, float, float]]:
        """The expectations of trials in full, in the objective's own unit: the value, its standard
        deviation, and the lower and the upper end of its 90% interval. They are neither worse than
        any value that was seen, nor outside the bounds of the metric."""
        means, deviations = self.in_full(numbers)
        steps = np.array([[0.0], [1.0], [-REACH], [REACH]])
        expected, worse, best_end, worst_end = self.losses(means + steps * deviations)
        # The deviation is that of the wider side: bad values are far apart.
        deviations = np.minimum(worse - expected, sys.float_info.max)
        ends = self.sign * np.stack([best_end, worst_end])
        low = ends.min(axis=0)
        high = ends.max(axis=0)
        rows = np.stack([self.sign * expected, deviations, low, high], axis=1)
        return [tuple(row) for row in rows.tolist()]

    @np.errstate(over="ignore")
    def losses(self, predicted: Floats) -> Floats:
        """Values that the model predicts, as the objective to be minimised: neither worse than any
        that was seen, nor outside the bounds of the metric."""
        largest = sys.float_info.max
        least, most = np.clip(self._possible, -largest, largest)
        return np.asarray(np.clip(self.warp.undone(predicted + self.level), least, most))

    @cached_property
    def _possible(self) -> tuple[float, float]:
        sign = self.sign
        best, worst = self.seen
        low, high = bounds_of(self.metric, [sign * best, sign * worst])
        return min(sign * low, sign * high), worst

    def chances(self, numbers: Sequence[int], leader: int) -> Floats:
        """(n,) The probability that each trial turns out better than the leader. Both are uncertain
        and may err alike, so that it follows from their joint distribution."""
        means, covariance = self.posterior.joint(self.ends([*numbers, leader]))
        *_, of_leader = variances = np.diag(covariance)
        with_leader = covariance[:-1, -1]
        differences = variances[:-1] + of_leader - 2 * with_leader
        above_zero = np.maximum(differences, 1e-10)
        deviations = self.doubt * np.sqrt(above_zero)
        ahead = means[-1] - means[:-1]
        chances: Floats = ndtr(ahead / deviations)
        return chances

    def leader(self, numbers: Sequence[int]) -> int:
        """The trial of which most is expected in full."""
        means, _ = self.in_full(numbers)
        best = int(means.argmin())
        return numbers[best]


class Forecast:
    """Keeps the outlook of one study up to date, and the fitted hyperparameters in its history.

    The other arguments are those of `CurveReader`.
    """

    def __init__(
        self,
        encoding: SpaceEncoding,
        history: History,
        total: float,
        losses: Losses = ((), ()),
        metric: str = "",
    ) -> None:
        self.encoding = encoding
        self._history = history
        self._metric = metric
        self._sign = sign_of(history.study.directions[0])
        self.reader = CurveReader(self.encoding, history, total, losses)
        self.earlier = EarlierStudies(encoding, history.study.warm_start)
        """The evidence of earlier studies."""
        self._read_at = -1
        self._is_unfitted = False  # true if the outlook was made without permission to fit
        self._outlook: Outlook | None = None

    def outlook(self, *, fit: bool = True) -> Outlook | None:
        """The present outlook; None while too few trials have shown a value.

        Args:
            fit: True if the hyperparameters may be fitted again, as for decisions, which follow
                from the history. False for a mere look: watching a study must not change it.
        """
        curves = self.reader.curves()
        changes = self.reader.changes
        has_changed = changes != self._read_at
        if has_changed or (fit and self._is_unfitted):
            self._read_at = changes
            self._is_unfitted = not fit
            self._outlook = self._made(curves, fit)
        return self._outlook

    def _made(self, curves: Sequence[ShownCurve], fit: bool) -> Outlook | None:
        reader, earlier, encoding = self.reader, self.earlier, self.encoding
        seen = seen_of(curves)
        if seen < LEAST or not encoding.dimensions:
            return None
        warp = warp_of(curves)
        earlier_rows = earlier.rows(seen)
        own = MOST_ROWS - earlier_rows
        evidence, level = evidence_of(curves, warp, encoding, reader.blended, own)
        model = self._model(evidence, reader.values, fit)
        agreements = faded(model.agreements, seen)
        if earlier:
            model = model.with_agreements(agreements)
            evidence = earlier.beside(evidence, agreements, earlier_rows)
        return Outlook(
            curves=curves,
            known=reader.known,
            seen=reader.seen,
            warp=warp,
            level=level,
            posterior=model.condition(evidence),
            encoding=encoding,
            sign=self._sign,
            agreements=agreements,
            metric=self._metric,
        )

    def _model(self, evidence: Evidence, values: int, fit: bool) -> CurveModel:
        """The model with the study's hyperparameters, fitted again after enough new values."""
        dimensions, parameters = self.encoding.dimensions, self.encoding.parameters
        study = self._history.study
        fitted = study.system_attrs.get(FITTED) or {"values": 0, "theta": None}
        agreements = fitted.get("agreements") or self.earlier.usual
        model = CurveModel(dimensions, parameters, fitted["theta"], agreements)
        enough = FIT_GROWTH * fitted["values"]
        if not fit or len(evidence) < FIT_FROM or values < enough:
            return model
        model.fit(evidence)
        # With rounded numbers, as a driver that resumes the study would read them.
        theta = _rounded(model.theta.tolist())
        model = CurveModel(dimensions, parameters, np.array(theta))
        fitted = {"values": values, "theta": theta}
        if self.earlier:
            agreements = _rounded(self.earlier.agreements(model, evidence))
            fitted["agreements"] = agreements
            model = model.with_agreements(agreements)
        study.system_attrs[FITTED] = fitted
        self._history.touch_study()
        return model


def _rounded(numbers: Sequence[float]) -> list[float]:
    return [round(number, 6) for number in numbers]
