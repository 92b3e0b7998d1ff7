"""The user's beliefs about good values, as a probability density over the points of a space.

A numeric parameter with a prior follows a normal distribution around it on the parameter's own
scale, cut off at the bounds; a category with a prior has a larger weight than each other one. All
other parameters are uniform, and so is a share of each belief, because beliefs can be wrong.

Source: Hvarfner et al., "πBO: Augmenting Acquisition Functions with User Beliefs for Bayesian
Optimization" (ICLR 2022), for the density's weight in a score; NePS, the authors' code for Mallik
et al., "PriorBand" (NeurIPS 2023), for the deviations and weights.
"""

import math
from collections.abc import Mapping

import numpy as np
from optuna.distributions import CategoricalDistribution
from scipy.special import ndtr, ndtri

from hpsearch.search.curve_model.encoding import Floats, SpaceEncoding, choice_index, is_category
from hpsearch.study_file.space import Prior

DEVIATIONS = {"low": 0.5, "medium": 0.25, "high": 0.125}
"""Standard deviations of numeric parameters by confidence, as shares of their range."""
WEIGHTS = {"low": 2.0, "medium": 4.0, "high": 6.0}
"""By confidence, the weight of a category where each other one has 1."""
DOUBT = 0.1  # the share of a numeric parameter's belief that is uniform
WEIGHT = 10.0
"""The logarithm of the density is multiplied by this, and divided by the number of results."""
FAVOURED = 2
"""The fewest trials that stand for the belief, which are a quarter of all where there are more."""
REFUTED = 0.75
"""The mean place of these trials, from 0 for the best to 1 for the worst, at which the belief loses
all its weight: the place of trials that are all in the worse half."""


class Belief:
    """The density of one study's priors."""

    def __init__(self, encoding: SpaceEncoding, priors: Mapping[str, Prior]) -> None:
        self._encoding = encoding
        self._marginals: dict[str, _Number | _Category] = {}
        self._columns: dict[str, int] = {}
        believed = encoding.point({name: prior.value for name, prior in priors.items()})
        for column, (name, distribution) in enumerate(encoding.space.items()):
            if name not in priors or distribution.single():
                continue
            centre = float(believed[column])
            confidence = priors[name].confidence
            self._columns[name] = column
            if is_category(distribution):
                self._marginals[name] = _Category(distribution, centre, WEIGHTS[confidence])
            else:
                self._marginals[name] = _Number(centre, DEVIATIONS[confidence])

    def mode(self, point: Floats) -> Floats:
        """(parameters,) A point with its coordinates moved to the priors, where there are any."""
        moved = point.copy()
        for name, marginal in self._marginals.items():
            moved[self._columns[name]] = marginal.centre
        return moved

    def drawn(self, points: Floats) -> Floats:
        """(n, parameters) Points that follow the belief, from points that are uniform."""
        moved = points.copy()
        for name, marginal in self._marginals.items():
            column = self._columns[name]
            moved[:, column] = marginal.drawn(points[:, column])
        return moved

    def log_density(self, points: Floats) -> Floats:
        """(n,) The logarithm of the density at (n, parameters) points; 0 without a belief.

        A parameter counts only where it is active.
        """
        active = self._encoding.active(points)
        total = np.zeros(len(points))
        for name, marginal in self._marginals.items():
            coordinates = points[:, self._columns[name]]
            logs = np.log(marginal.density(coordinates))
            total += np.where(active[name], logs, 0.0)
        return total

    def weighed(self, points: Floats, shown: Floats, results: int) -> Floats:
        """(n,) The weight in log scores of (n, parameters) points after so many results; `shown`
        are (m, parameters) of their points, evenly by rank, the best first."""
        weight = self.credibility(shown) * WEIGHT / max(1, results)
        return self.log_density(points) * weight

    def credibility(self, shown: Floats) -> float:
        """The share of the belief that (m, parameters) points confirm, the best result first: 1 if
        the favoured ones did no worse than the others, and 0 if they are in the worse half."""
        count = len(shown)
        if count < FAVOURED:
            return 1.0
        most = max(FAVOURED, count // 4)
        favoured = np.argsort(-self.log_density(shown), kind="stable")[:most]
        place = float(np.mean((favoured + 0.5) / count))
        return min(1.0, max(0.0, (REFUTED - place) / (REFUTED - 0.5)))


class _Number:
    """A normal distribution within the bounds, mixed with a share of `DOUBT` that is uniform."""

    def __init__(self, centre: float, deviation: float) -> None:
        self.centre = centre
        self._deviation = deviation
        self._below = float(ndtr(-centre / deviation))
        above = float(ndtr((centre - 1.0) / deviation))
        self._inside = 1.0 - self._below - above

    def density(self, u: Floats) -> Floats:
        """(n,) The density at n coordinates."""
        distance = (u - self.centre) / self._deviation
        height = 1.0 / (math.sqrt(2 * math.pi) * self._deviation * self._inside)
        return np.asarray(DOUBT + (1 - DOUBT) * height * np.exp(-0.5 * distance**2))

    def drawn(self, u: Floats) -> Floats:
        """(n,) Coordinates that follow the density, from uniform ones."""
        share = np.clip((u - DOUBT) / (1 - DOUBT), 0.0, 1.0)
        normal = self.centre + self._deviation * ndtri(self._below + share * self._inside)
        anywhere = u / DOUBT
        return np.where(u < DOUBT, anywhere, np.clip(normal, 0.0, 1.0))


class _Category:
    def __init__(self, distribution: CategoricalDistribution, centre: float, weight: float) -> None:
        self.centre = centre
        self._distribution = distribution
        self._count = len(distribution.choices)
        weights = np.ones(self._count)
        weights[choice_index(distribution, np.array([centre]))] = weight
        self._shares = weights / weights.sum()

    def density(self, u: Floats) -> Floats:
        """(n,) The density at n coordinates."""
        index = choice_index(self._distribution, u)
        return np.asarray(self._count * self._shares[index])

    def drawn(self, u: Floats) -> Floats:
        """(n,) Coordinates in the middle of categories that follow the density."""
        ends = np.cumsum(self._shares)[:-1]
        chosen = np.searchsorted(ends, u, side="right")
        return np.asarray((chosen + 0.5) / self._count)
