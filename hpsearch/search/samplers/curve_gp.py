"""The `curve_gp` sampler, which proposes configurations by a model of whole learning curves.

The model (`model`) learns from the curves of trials (`curves`). Candidates are drawn over the whole
space and around the best trials. All are scored at one random horizon by the probability of being
better than a random target a little below the best value seen, times the probability of not failing
(`survival`); the best one that is untried is proposed. One proposal in seven is drawn at random.

Source: the random horizon and target are those of Rakotoarison et al., "In-Context Freeze-Thaw
Bayesian Optimization for Hyperparameter Optimization" (ICML 2024), applied here to new
configurations only. The first proposals are a scrambled sequence of Sobol's: Owen, "Scrambling
Sobol' and Niederreiter-Xing Points" (1998).
"""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial
from scipy.special import log_ndtr

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.records import Trial
from hpsearch.domain.seeds import derived_seed
from hpsearch.search.curve_model.belief import Belief
from hpsearch.search.curve_model.curves import FLOOR, HORIZON, ShownCurve, tau_of
from hpsearch.search.curve_model.earlier import OPENINGS
from hpsearch.search.curve_model.encoding import Floats
from hpsearch.search.curve_model.forecast import Forecast, Outlook
from hpsearch.search.curve_model.model import Points
from hpsearch.search.curve_model.survival import MOST, SurvivalModel, share_of
from hpsearch.search.ranking.in_order import InOrder
from hpsearch.search.untried import Untried
from hpsearch.study_file.space import Prior, in_optuna

DESIGN = 8  # the number of first proposals that are spread evenly over the space
UNIFORM, LOCAL, AROUND = 32, 80, 8
"""Candidates over the whole space, candidates near the best trials, and the number of these."""
BELIEVED = 24
"""Candidates that follow the priors; so does every other one of the first proposals."""
MOST_SHOWN = 1_000  # the most results by which the priors are judged
WARM = 24  # candidates around the best configurations of earlier studies, if there are any
SHIFTS = 8
"""The most points for one of the first proposals, until one keeps the study's requirements."""
BLOCKS = 64  # the most times that UNIFORM candidates are drawn, until as many keep the requirements
BLIND = 0.15  # the share of proposals that are drawn at random, because the model can be wrong
MOVE, SPREAD = 0.1, 0.8
"""A local candidate moves by MOVE * exp(SPREAD * N) * N in each coordinate that moves; N are
standard normal."""
FARTHEST = 0.08
"""The farthest target below the best value, as a share of the distance to the middle one."""
SAFE = 0.5
"""The least probability of survival of a candidate, as a share of the safest one's. Where only
failures were seen, little is known and much is expected, and no factor would make up for that."""


class CurveGPSampler(BaseSampler):
    """Proposes configurations by a Gaussian process over learning curves. Its draws depend on the
    seed, the trial's number and the study's history, and on nothing else."""

    def __init__(
        self,
        forecast: Forecast,
        history: History,
        seed: int,
        priors: Mapping[str, Prior] | None = None,
        untried: Untried | None = None,
    ) -> None:
        self._encoding = forecast.encoding
        self._forecast = forecast
        self._belief = Belief(self._encoding, priors) if priors else None
        self._history = history
        self._untried = untried
        self._seed = seed
        self._failed = InOrder(history, _failed_key)
        self._worked = InOrder(history, _worked_key)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The whole space, including inactive parameters."""
        return self._encoding.drawn

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A configuration for the trial."""
        params = self._encoding.params(self.propose(trial.number))
        return {name: in_optuna(params[name]) for name in search_space}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Never called: other samplers draw parameters that the space does not name."""
        raise NotImplementedError(param_name)

    def propose(self, number: int) -> Floats:
        """(parameters,) The point of the space that trial `number` should try. It keeps the study's
        requirements unless no candidate does."""
        first = self._first_proposal(number)
        if first is not None:
            return first
        outlook = None if number < DESIGN else self._forecast.outlook()
        if outlook is None:
            return self._designed(number)
        rng = np.random.default_rng([self._seed, number])
        uniform, others = self._candidates(rng, outlook)
        points = np.concatenate([uniform, *others])
        points = points[self._encoding.allowed(points)]
        if len(points) == 0:
            return self._designed(number)
        features = self._encoding.features(points)
        score = _improvement(rng, outlook, features)
        if self._belief is not None:
            curves = outlook.curves
            score = score + self._belief.weighed(points, _spread(curves), len(curves))
        if rng.random() < BLIND:
            score = _anywhere(rng, len(points), len(uniform))
        failures = self._failures()
        if failures is not None:
            score = _among_the_safe(score, failures.survival(features))
        order = np.argsort(-score, kind="stable")
        return self._first_untried(points[order])

    def _first_proposal(self, number: int) -> Floats | None:
        """The mode of the priors or a configuration of earlier studies, if it is its turn."""
        if self._belief is not None:
            mode = self._belief.mode(self._designed(number))
            if self._is_untried(number, mode) and self._is_allowed(mode):
                return mode
        opening = self._opening(number)
        is_usable = opening is not None and self._is_allowed(opening)
        return opening if is_usable else None

    def _first_untried(self, points: Floats) -> Floats:
        known: set[bytes] = set()  # many points may be at the same end of the space
        for point in points:
            place = point.tobytes()
            if place not in known and not self._is_known(point):
                return np.asarray(point)
            known.add(place)
        return np.asarray(points[0])

    def _is_known(self, point: Floats) -> bool:
        return self._untried is not None and self._untried.was_tried(self._encoding.params(point))

    def _is_allowed(self, point: Floats) -> bool:
        return bool(self._encoding.allowed(point[None])[0])

    def _designed(self, number: int) -> Floats:
        """Point `number` of a sequence that fills the space evenly, shifted by the seed. Where it
        breaks a requirement, that point of other shifts."""
        point = self._shifted(number, self._seed)
        for shift in range(1, SHIFTS):
            if self._is_allowed(point):
                break
            point = self._shifted(number, derived_seed(self._seed, "shift", shift))
        return point

    def _shifted(self, number: int, seed: int) -> Floats:
        from scipy.stats.qmc import Sobol  # takes longer to import than all else here

        sequence = Sobol(self._encoding.parameters, rng=np.random.default_rng(seed))
        if number:  # scipy refuses to go on by none
            sequence.fast_forward(number)
        point = np.asarray(sequence.random()[0])
        if self._belief is None or number % 2 == 0:
            return point
        return np.asarray(self._belief.drawn(point[None])[0])

    def _is_untried(self, number: int, mode: Floats) -> bool:
        """True if trial `number` is the first that is drawn, and none before is at this point."""
        encoding = self._encoding
        if self._drawn_before(number, 1):
            return False
        earlier = [each for each in self._history.trials[:number] if not each.out_of_space]
        points = np.array([mode] + [encoding.point(trial.params) for trial in earlier])
        first, *others = encoding.features(points)
        return not any(np.allclose(each, first) for each in others)

    def _opening(self, number: int) -> Floats | None:
        earlier = self._forecast.earlier
        if not earlier:
            return None
        drawn = self._drawn_before(number, OPENINGS)
        return earlier.opening(drawn, self._designed(number))

    def _drawn_before(self, number: int, most: int) -> int:
        earlier = islice(self._history.trials, number)
        drawn = (trial for trial in earlier if trial.role is Role.SEARCH)
        return sum(1 for _ in islice(drawn, most))

    def _candidates(
        self, rng: np.random.Generator, outlook: Outlook
    ) -> tuple[Floats, list[Floats]]:
        """(at most UNIFORM, parameters) Allowed points anywhere, and points near the best ones, by
        the priors and near those of earlier studies, each (n, parameters)."""
        encoding, earlier = self._encoding, self._forecast.earlier
        best = np.array([curve.point for curve in outlook.curves[:AROUND]])
        near = best[np.arange(LOCAL) % len(best)]
        others = [self._moved(rng, near)]
        uniform = np.zeros((0, encoding.parameters))
        for _ in range(BLOCKS):
            block = rng.random((UNIFORM, encoding.parameters))
            allowed = block[encoding.allowed(block)]
            uniform = np.concatenate([uniform, allowed])
            if len(uniform) >= UNIFORM:
                break
        if self._belief is not None:
            anywhere = rng.random((BELIEVED, encoding.parameters))
            others.append(self._belief.drawn(anywhere))
        if earlier:
            leading, weights = earlier.leading(outlook.agreements)
            chosen = rng.choice(len(leading), size=WARM, p=weights)
            others.append(self._moved(rng, leading[chosen]))
        return uniform[:UNIFORM], others

    def _moved(self, rng: np.random.Generator, near: Floats) -> Floats:
        """(n, parameters) Points near the given ones: some coordinates move, at least one."""
        shape = count, d = near.shape
        sizes = MOVE * np.exp(SPREAD * rng.standard_normal(shape))
        moves = sizes * rng.standard_normal(shape)
        moving = rng.random(shape) < 0.5
        always = rng.integers(d, size=count)
        moving[np.arange(count), always] = True
        anywhere = rng.random(shape)
        nearby = np.clip(near + moves, 0.0, 1.0)
        moved = np.where(self._encoding.categorical, anywhere, nearby)
        return np.where(moving, moved, near)

    def _failures(self) -> SurvivalModel | None:
        failed, worked = self._failed, self._worked
        if not len(failed):
            return None
        share = share_of(len(failed), len(failed) + len(worked))
        features = self._features_of(failed), self._features_of(worked)
        return SurvivalModel(*features, share, self._encoding.parameters)

    def _features_of(self, some: InOrder) -> Floats:
        encoding, known = self._encoding, self._forecast.reader.known
        numbers = some.last(MOST // 2)
        if not numbers:
            return np.zeros((0, encoding.dimensions))
        points = [
            known[number].point
            if number in known
            else encoding.point(self._history.trials[number].params)
            for number in numbers
        ]
        return encoding.features(np.array(points))


def _is_outside(trial: Trial) -> bool:
    kind = trial.error_kind
    return (kind is not None and kind.of_configuration) or trial.violation > 0


def _failed_key(trial: Trial) -> tuple[int] | None:
    has_failed = trial.params and _is_outside(trial) and trial.is_evidence
    return (trial.number,) if has_failed else None


def _worked_key(trial: Trial) -> tuple[int] | None:
    has_worked = trial.params and trial.reports and not _is_outside(trial)
    has_worked = has_worked and trial.is_evidence
    return (trial.number,) if has_worked else None


def _spread(curves: Sequence[ShownCurve]) -> Floats:
    count = len(curves)
    ranks = np.linspace(0, count - 1, min(count, MOST_SHOWN)).round()
    return np.array([curves[int(rank)].point for rank in ranks])


def _improvement(rng: np.random.Generator, outlook: Outlook, features: Floats) -> Floats:
    """(n,) The log probability that each candidate, of (n, dimensions) features, is better than a
    random target at a random horizon."""
    count = len(features)
    nearest = float(tau_of(np.array(HORIZON)))
    horizon = nearest + (1 - nearest) * rng.random()
    below = 10 ** rng.uniform(-3.0, -0.5)
    share = min(below, FARTHEST)
    target = math.log(1.0 - share / FLOOR) - outlook.level
    taus = np.full(count, horizon)
    new = np.full(count, -1)
    there = Points(features, taus, new)
    mean, deviation = outlook.posterior.predict(there)
    z = (target - mean) / deviation
    log_probability: Floats = log_ndtr(z)
    return log_probability


def _among_the_safe(score: Floats, survival: Floats) -> Floats:
    unsafe = survival < SAFE * survival.max()
    return np.where(unsafe, -np.inf, score + np.log(survival))


def _anywhere(rng: np.random.Generator, count: int, uniform: int) -> Floats:
    """(count,) Random scores by which any of the first candidates, which lie over the whole space,
    may be first. They lie so far apart that only a tiny probability of survival changes their
    order."""
    score = 1e3 * rng.random(count)
    return np.where(np.arange(count) < (uniform or count), score, -np.inf)
