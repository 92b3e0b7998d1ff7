"""The forecast: what trials will have reached at the full budget, as far as their curves tell.

One model serves the whole search of a study, whichever sampler draws its configurations. It is
fitted again as the evidence grows, and what was fitted is kept in the study's records, so that a
driver that resumes the study expects the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from hpsearch.domain.history import History
from hpsearch.domain.records import sign_of
from hpsearch.ranking.ranges import range_of
from hpsearch.ranking.selection import REACH
from hpsearch.search.curve_model.curves import (
    MOST_ROWS,
    CurveReader,
    ShownCurve,
    Warp,
    evidence_of,
    seen_of,
    warp_of,
)
from hpsearch.search.curve_model.earlier import EarlierStudies, faded
from hpsearch.search.curve_model.encoding import Floats, SpaceEncoding
from hpsearch.search.curve_model.model import CurveModel, Evidence, Points, Posterior

LEAST = 4
"""With fewer trials that have shown a value, nothing is expected of any."""
FIT_FROM = 8
FIT_GROWTH = 1.25
"""Hyperparameters are fitted once there are this many values, and again when their number has grown
by this factor."""
DOUBT, DOUBTED = 2.0, 8
"""The model's standard deviations are taken for this many times too small before a study shows how
far they are, and how many values this assumption is worth (measured on recorded curves:
docs/search.md)."""
SURPRISE = 6.0
"""The standard deviations at which a single surprise is cut off."""
FITTED = "hpsearch:curve_model"
"""System attribute of a study: the hyperparameters, and how many values they were fitted to."""


@dataclass(frozen=True)
class Outlook:
    """The knowledge of one moment.

    Args:
        curves: What trials have shown, the best first.
        level: What was taken off the stretched values.
        posterior: The model that has seen them.
        points: By trial, (parameters,) its configuration.
        sign: -1 where the objective is maximised, so that less is always better here.
        agreements: (studies,) Of each earlier study with this one.
    """

    curves: Sequence[ShownCurve]
    warp: Warp
    level: float
    posterior: Posterior
    points: Mapping[int, Floats]
    encoding: SpaceEncoding
    sign: float
    agreements: Sequence[float] = ()
    metric: str = ""

    def in_full(self, numbers: Sequence[int]) -> tuple[Floats, Floats]:
        """(n,) each: mean and standard deviation of trials' warped values at the full budget."""
        points = np.array([self.points[number] for number in numbers])
        features = self.encoding.features(points)
        end = Points(features, np.ones(len(numbers)), np.array(numbers))
        means, deviations = self.posterior.predict(end)
        return means, self.doubt * deviations

    @cached_property
    def doubt(self) -> float:
        """By what the model's standard deviations are multiplied, so that they hold what they say.

        It is measured on the evidence: how far the last value of each trial is from what the rest
        of the evidence says of it, in standard deviations. A few such values are assumed at first.
        """
        trial = self.posterior.trial
        ends = np.append(trial[1:] != trial[:-1], True)
        continues = np.append(False, trial[1:] == trial[:-1])
        surprises = self.posterior.surprises()[ends & continues]
        squares = np.minimum(np.abs(surprises), SURPRISE) ** 2
        total = float(squares.sum()) + DOUBTED * DOUBT**2
        return max(1.0, math.sqrt(total / (len(squares) + DOUBTED)))

    def values(self, numbers: Sequence[int]) -> list[tuple[float, float, float, float]]:
        """The expectations of trials in full, in the objective's own terms: the value, its standard
        deviation, and the lower and the upper end of its 90% interval.

        Nothing worse is expected than the worst value that any trial has shown, and nothing that
        the metric cannot be.
        """
        means, deviations = self.in_full(numbers)
        steps = np.array([[0.0], [1.0], [-REACH], [REACH]])
        lines = self.warp.undone(means + self.level + steps * deviations)
        # The deviation is that of the wider side: bad values are far apart.
        expected, worse, best_end, worst_end = np.clip(lines, *self._possible)
        ends = self.sign * np.stack([best_end, worst_end])
        rows = [self.sign * expected, worse - expected, ends.min(axis=0), ends.max(axis=0)]
        return [tuple(row) for row in np.stack(rows, axis=1).tolist()]

    @cached_property
    def _possible(self) -> tuple[float, float]:
        """The best value that the metric can have and the worst one that was seen; smaller is
        better."""
        seen = [value for curve in self.curves for value in curve.values if math.isfinite(value)]
        low, high = range_of(self.metric, [self.sign * value for value in seen])
        return min(self.sign * low, self.sign * high), max(seen)

    def chances(self, numbers: Sequence[int], against: Sequence[int]) -> Floats:
        """(n,) The probability that each trial turns out better than is expected of the best of
        others."""
        best, _ = self.in_full(against)
        means, deviations = self.in_full(numbers)
        return np.asarray(ndtr((best.min() - means) / deviations))


class Forecast:
    """Keeps the outlook of one study up to date.

    Args:
        history: The study's records: what is fitted is kept in them.
        losses: Names of a validation loss, which counts beside the objective; the first one that
            is reported.
    """

    def __init__(
        self,
        encoding: SpaceEncoding,
        history: History,
        total: float,
        losses: Sequence[str] = (),
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
        self._is_unfitted = False
        """True if the outlook was made for someone who only looks."""
        self._outlook: Outlook | None = None

    def outlook(self, *, fit: bool = True) -> Outlook | None:
        """The present outlook; None while too few trials have shown a value.

        Args:
            fit: Whether the hyperparameters may be fitted again. Decisions may, since when they are
                made follows from the history; whoever only looks may not, since a study that is
                watched more often must not decide otherwise.
        """
        curves = self.reader.curves()
        changed = self.reader.changes != self._read_at
        if changed or (fit and self._is_unfitted):
            self._read_at = self.reader.changes
            self._is_unfitted = not fit
            self._outlook = self._made(curves, fit)
        return self._outlook

    def _made(self, curves: list[ShownCurve], fit: bool) -> Outlook | None:
        seen = seen_of(curves)
        if seen < LEAST or not self.encoding.dimensions:
            return None
        warp = warp_of(curves)
        earlier_rows = self.earlier.rows(seen)
        own = MOST_ROWS - earlier_rows
        evidence, level = evidence_of(curves, warp, self.encoding, self.reader.blended, own)
        values = sum(len(curve.values) for curve in curves)
        model = self._model(evidence, values, fit)
        agreements = faded(model.agreements, seen)
        if self.earlier:
            model = model.with_agreements(agreements)
            evidence = self.earlier.beside(evidence, agreements, earlier_rows)
        posterior = model.condition(evidence)
        points = {curve.number: curve.point for curve in curves}
        known = (points, self.encoding, self._sign, agreements, self._metric)
        return Outlook(curves, warp, level, posterior, *known)

    def _model(self, evidence: Evidence, values: int, fit: bool) -> CurveModel:
        """The model with the study's hyperparameters, fitted again when all curves together have
        enough new values."""
        shape = self.encoding.dimensions, self.encoding.parameters
        study = self._history.study
        fitted = study.system_attrs.get(FITTED) or {"values": 0, "theta": None}
        agreements = fitted.get("agreements") or self.earlier.usual
        model = CurveModel(*shape, fitted["theta"], agreements)
        if not fit or len(evidence) < FIT_FROM or values < FIT_GROWTH * fitted["values"]:
            return model
        model.fit(evidence)
        # With rounded numbers, as a driver that resumes the study would read them.
        theta = [round(float(t), 6) for t in model.theta]
        model = CurveModel(*shape, np.array(theta))
        fitted = {"values": values, "theta": theta}
        if self.earlier:
            agreements = [round(rho, 6) for rho in self.earlier.agreements(model, evidence)]
            fitted["agreements"] = agreements
            model = model.with_agreements(agreements)
        study.system_attrs[FITTED] = fitted
        self._history.touch_study()
        return model
