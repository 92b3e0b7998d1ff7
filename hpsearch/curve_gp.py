"""The `curve_gp` sampler: proposes what a model of whole learning curves thinks worth a look.

Evidence is each trial's value at a few marks along its curve and its latest one, so trials that were paused or
pruned count for what they showed, at the resource where they showed it. Values are stretched at the good end, where
differences matter. Candidates are drawn over the whole space and around the best trials. All are scored at one random
horizon by the probability of being better than a random target a little below the best value seen, times the
probability of not failing; the best one is proposed. One proposal in seven is drawn at random.

Source: the random horizon and target are those of Rakotoarison et al., "In-Context Freeze-Thaw Bayesian Optimization
for Hyperparameter Optimization" (ICML 2024), applied here to new configurations only; the first proposals follow the
additive recurrence of Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences" (2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from scipy.special import log_ndtr

from hpsearch.curve_model import CurveModel, Rows
from hpsearch.encoding import Conditions, Encoding
from hpsearch.failing import FailureModel
from hpsearch.records import violation_of

Floats = NDArray[np.float64]

DESIGN = 8
"""The first proposals are spread evenly over the space."""
MOST_ROWS = 160
"""Rows of evidence: the cost of a decision grows with their cube."""
FIT_FROM = 8
FIT_GROWTH = 1.25
"""Hyperparameters are fitted from so many values on, and again each time their number has grown by so much."""
UNIFORM, LOCAL, AROUND = 32, 80, 8
"""Candidates over the whole space, and around so many of the best trials."""
BLIND = 0.15
"""The share of proposals that are drawn at random, whatever the model says: it can be wrong."""
MOVE, SPREAD = 0.1, 0.8
"""A local candidate moves by MOVE * exp(SPREAD * N) * N in each coordinate that moves; N are standard normal."""
HORIZON = 0.5
"""The least horizon, as tau."""
FLOOR, BELOW, WORST = 0.1, 0.08, 20.0
"""Of the warp: how strongly the good end is stretched, how far below the best it reaches, where the bad end is cut."""
MARKS_PER_TOTAL = 17.0
"""The first mark on a curve is a 17th of its length, the next ones three times the one before."""
SAFE = 0.5
"""Candidates are passed over that are less than so likely to survive as the safest one is: where nothing but failures
was seen little is known and much is expected, and no factor would make up for it (measured: benchmarks/failing.py)."""
FITTED = "hpsearch:curve_gp"
"""System attribute of a study: the hyperparameters, and how many values they were fitted to."""
FAILED = "hpsearch:failed"
"""System attribute of a trial that ran out of memory or time or diverged: a fact about its region of the space."""


@dataclass(frozen=True, slots=True)
class _Curve:
    """What one trial showed; values are minimised."""

    trial: FrozenTrial
    point: Floats
    resources: tuple[float, ...]
    values: tuple[float, ...]
    best: float
    outside: bool
    """Whether it failed or oversteps a limit: nobody wants its like."""


@dataclass(frozen=True)
class Warp:
    """Stretches the good end: ln(0.1 + (y - low) / (middle - low)), less ln 0.1; 0 at `low`, 2.4 at `middle`."""

    low: float
    middle: float

    def __call__(self, values: Floats) -> Floats:
        """Warped values; what is not finite is worst."""
        share = (np.asarray(values, dtype=float) - self.low) / max(self.middle - self.low, 1e-12)
        share = np.where(np.isfinite(share), share, WORST)
        return np.asarray(np.log(FLOOR + np.clip(share, -BELOW, WORST)) - math.log(FLOOR))


class CurveGPSampler(BaseSampler):
    """Proposes configurations by a Gaussian process over learning curves. Its draws depend on nothing but the seed,
    the trial's number and the study's history.

    Args:
        space: The distributions of all parameters, parents before children.
        total: The full trial budget; a trial's intermediate values stand at steps up to `total * scale`.
        seed: Of everything random.
        conditions: By parameter, the values its parents must have for it to be active.
        scale: Steps a unit of the trial budget.
    """

    def __init__(
        self,
        space: Mapping[str, BaseDistribution],
        total: float,
        seed: int,
        conditions: Conditions | None = None,
        scale: float = 1.0,
    ) -> None:
        self._encoding = Encoding(space, conditions)
        self._total = total * scale
        self._seed = seed
        self._marks = _marks(total * scale)
        self._curves: dict[int, _Curve] = {}

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The whole space, inactive parameters with it: nobody asks for those."""
        return {name: d for name, d in self._encoding.space.items() if not d.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A configuration for the trial."""
        params = self._encoding.params(self.propose(study, trial.number))
        return {name: params[name] for name in search_space}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A parameter that the space does not name, at random."""
        draw = np.random.default_rng([self._seed, trial.number, len(trial.params)]).random(1)
        return Encoding({param_name: param_distribution}).params(draw)[param_name]

    # ---------------------------------------------------------------------------------------------- proposing

    def propose(self, study: Study, number: int) -> Floats:
        """(parameters,) The point of the space that trial `number` should try."""
        curves = self._evidence(study)
        seen = [curve for curve in curves if math.isfinite(curve.best)]
        if number < DESIGN or len(seen) < DESIGN // 2:
            return self._designed(number)
        rng = np.random.default_rng([self._seed, number])
        curves.sort(key=lambda curve: (curve.outside, curve.best, curve.trial.number))
        worst = max(curve.best for curve in seen)
        bests = np.sort([worst if curve.outside else curve.best for curve in seen])
        warp = Warp(float(bests[0]), float(np.median(bests)))
        rows, level = self._rows(curves, warp)
        posterior = self._fitted(study, rows, sum(len(curve.values) for curve in curves)).condition(rows)

        points = self._candidates(rng, np.array([curve.point for curve in curves[:AROUND]]))
        features = self._encoding.features(points)
        horizon = HORIZON + (1 - HORIZON) * rng.random()
        below = 10 ** rng.uniform(-3.0, -0.5) * (warp.middle - warp.low)
        target = float(warp(np.array(warp.low - below))) - level
        mean, deviation = posterior.predict(features, np.full(len(points), horizon))
        score = log_ndtr((target - mean) / deviation)
        if rng.random() < BLIND:  # any one anywhere, as long as it is safe
            score = np.where(np.arange(len(points)) < UNIFORM, 1e3 * rng.random(len(points)), -np.inf)
        failures = self._failures(study)
        if failures is not None:
            survival = failures.survival(features)
            score = np.where(survival < SAFE * survival.max(), -np.inf, score + np.log(survival))
        return np.asarray(points[int(np.argmax(score))])

    def _designed(self, number: int) -> Floats:
        """Point `number` of a sequence that fills the space evenly, shifted by the seed."""
        d = self._encoding.parameters
        ratio = 2.0
        for _ in range(40):  # to the root of ratio**(d + 1) == ratio + 1
            ratio = (1 + ratio) ** (1 / (d + 1))
        shift = np.random.default_rng(self._seed).random(d)
        return np.asarray((shift + (number + 1) * ratio ** -np.arange(1.0, d + 1)) % 1.0)

    def _candidates(self, rng: np.random.Generator, best: Floats) -> Floats:
        """(UNIFORM + LOCAL, parameters) Points anywhere, and points near the best ones."""
        d = self._encoding.parameters
        near = best[np.arange(LOCAL) % len(best)]
        moves = MOVE * np.exp(SPREAD * rng.standard_normal(near.shape)) * rng.standard_normal(near.shape)
        moving = rng.random(near.shape) < 0.5
        moving[np.arange(LOCAL), rng.integers(d, size=LOCAL)] = True
        anywhere = rng.random(near.shape)
        moved = np.where(self._encoding.categorical, anywhere, np.clip(near + moves, 0.0, 1.0))
        return np.concatenate([rng.random((UNIFORM, d)), np.where(moving, moved, near)])

    # ----------------------------------------------------------------------------------------------- evidence

    def _evidence(self, study: Study) -> list[_Curve]:
        """What every trial with a finite value has shown so far."""
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        curves = []
        for trial in study.get_trials(deepcopy=False):
            known = self._curves.get(trial.number)
            if known is None or known.trial is not trial:
                known = self._curve(trial, sign)
                if known is None:
                    continue
                self._curves[trial.number] = known
            curves.append(known)
        return curves

    def _curve(self, trial: FrozenTrial, sign: float) -> _Curve | None:
        """A trial's values at the marks it has passed, and its latest."""
        point = self._encoding.point(trial.params)
        if FAILED in trial.system_attrs:  # wherever curves are compared, it is as bad as anything that was seen
            horizons = (self._total**HORIZON, self._total)
            return _Curve(trial, point, horizons, (math.inf, math.inf), math.inf, outside=True)
        values = {step: sign * value for step, value in trial.intermediate_values.items() if math.isfinite(value)}
        if not values and trial.state is TrialState.COMPLETE and trial.value is not None:
            values = {round(self._total): sign * trial.value}
        if not values:
            return None
        steps = sorted(values)
        chosen = {max((step for step in steps if step <= mark), default=steps[0]) for mark in self._marks}
        at = [step for step in steps if step in chosen or step == steps[-1]]
        shown, outside = tuple(values[step] for step in at), violation_of(trial.system_attrs) > 0
        return _Curve(trial, point, tuple(map(float, at)), shown, min(values.values()), outside)

    def _rows(self, curves: Sequence[_Curve], warp: Warp) -> tuple[Rows, float]:
        """At most MOST_ROWS rows, the best trials' first up to half, of the others the latest values, evenly by rank.

        Returns: The rows, and the mean that was taken off their values.
        """
        chosen = [(curve, range(len(curve.values))) for curve in curves]
        if sum(len(which) for _, which in chosen) > MOST_ROWS:
            whole = np.searchsorted(np.cumsum([len(which) for _, which in chosen]), MOST_ROWS // 2, side="right")
            room = MOST_ROWS - sum(len(which) for _, which in chosen[:whole])
            rest = np.unique(np.linspace(whole, len(curves) - 1, min(room, len(curves) - int(whole))).round())
            last = [curves[int(i)] for i in rest]
            chosen = [*chosen[:whole], *((curve, range(len(curve.values) - 1, len(curve.values))) for curve in last)]
        features = self._encoding.features(np.array([curve.point for curve, _ in chosen]))
        of = np.repeat(np.arange(len(chosen)), [len(which) for _, which in chosen])
        resources = np.array([curve.resources[i] for curve, which in chosen for i in which])
        values = np.array([curve.values[i] for curve, which in chosen for i in which])
        values = np.minimum(values, values.max(where=np.isfinite(values), initial=warp.middle))
        outside = np.array([curve.outside for curve, which in chosen for _ in which])
        z = warp(np.where(outside, np.maximum(values, warp.middle), values))  # what is of no use attracts nobody
        tau = np.log(np.maximum(resources, 1e-9)) / math.log(self._total) if self._total > 1 else np.ones(len(z))
        return Rows(features[of], np.maximum(tau, 0.0), of, z - z.mean()), float(z.mean())

    def _fitted(self, study: Study, rows: Rows, values: int) -> CurveModel:
        """The model with the study's hyperparameters, fitted anew when the evidence has grown."""
        shape = self._encoding.dimensions, self._encoding.parameters
        fitted = study._storage.get_study_system_attrs(study._study_id).get(FITTED) or {"values": 0, "theta": None}
        model = CurveModel(*shape, fitted["theta"])
        if len(rows) < FIT_FROM or values < FIT_GROWTH * fitted["values"]:
            return model
        model.fit(rows)
        theta = [round(float(t), 6) for t in model.theta]
        found: dict[str, Any] = {"values": values, "theta": theta}
        study._storage.set_study_system_attr(study._study_id, FITTED, found)
        return CurveModel(*shape, np.array(theta))  # as a driver that resumes the study would read it

    def _failures(self, study: Study) -> FailureModel | None:
        """What is known of regions that fail or overstep limits; None where nothing did."""
        trials = [trial for trial in study.get_trials(deepcopy=False) if trial.params]
        failed = [t for t in trials if FAILED in t.system_attrs or violation_of(t.system_attrs) > 0]
        if not failed:
            return None
        numbers = {trial.number for trial in failed}
        worked = [trial for trial in trials if trial.number not in numbers and trial.intermediate_values]
        points = np.array([self._encoding.point(trial.params) for trial in [*failed, *worked]])
        labels = np.array([1.0] * len(failed) + [0.0] * len(worked))
        return FailureModel(self._encoding.features(points), labels, self._encoding.parameters)


def _marks(total: float) -> list[float]:
    """Where along a curve of this length its values are evidence."""
    first = total / MARKS_PER_TOTAL
    return [first * 3**k * (1 + 1e-9) for k in range(3)]
