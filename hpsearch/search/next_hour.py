"""What another hour would bring a study: how much better its winner gets, if trained again.

The model of learning curves expects a gain g over the leader of a few candidates, those of which it
expects most: unfinished trials and new configurations. That alone promises too much in some studies
and too little in others, which chance corrects: of n trainings in full, the best is among the
latest h with a probability of about h / n. With u the distance from the leader to the median of new
configurations in full, n the training so far and h that of another hour, both in full trainings,
the expected gain is

    e = SIZE sqrt(g u) sqrt(h) / n

and below one full training it grows with h. Most hours bring nothing: a gain comes with the
probability p = OFTEN sqrt(e / u), and is then exponentially distributed. Both factors are measured
on recorded curves (docs/measured/forecasts.md, "Another hour").
"""

import math
import sys
from collections.abc import Sequence

import numpy as np

from hpsearch.search.curve_model.forecast import Outlook
from hpsearch.search.curve_model.model import Points

SIZE, OFTEN, MOST_OFTEN = 1.4, 1.3, 0.9
NEW, CANDIDATES, DRAWS = 32, 4, 256
"""New configurations, all candidates that meet the leader, and the draws of their values."""
NOTABLE = 0.02  # the gain of which a chance is told, as a share of u
NOTHING = 1e-4  # the least g, as a share of u


def gain_of(
    outlook: Outlook, leader: int, unfinished: Sequence[int], hour: float, so_far: float
) -> tuple[float, float]:
    """The expected gain e of another hour, and its scale u, for h and n as `hour` and `so_far`."""
    foretold, scale = _foretold(outlook, leader, unfinished)
    scale = max(scale, sys.float_info.min)
    reach = math.sqrt(hour) if hour > 1 else hour
    return SIZE * math.sqrt(max(NOTHING * scale, foretold) * scale) * reach / so_far, scale


def chance_of(gain: float, scale: float, more_than: float) -> float:
    """The probability that a gain is larger than so much, where so much is expected."""
    often = min(MOST_OFTEN, OFTEN * math.sqrt(gain / scale))
    return often * math.exp(-often * more_than / gain)


def _foretold(outlook: Outlook, leader: int, unfinished: Sequence[int]) -> tuple[float, float]:
    """The gain that the model expects if the best candidates are trained in full, and u."""
    rng = np.random.default_rng(0)
    known = outlook.ends([leader, *unfinished])
    new = rng.random((NEW, outlook.encoding.parameters))
    features = outlook.encoding.features(new[outlook.encoding.allowed(new)])
    x = np.concatenate([known.x, features])
    trial = np.concatenate([known.trial, -1 - np.arange(len(features))])
    means, covariance = outlook.posterior.joint(Points(x, np.ones(len(x)), trial))
    covariance = covariance * outlook.doubt**2
    expected = outlook.losses(means)
    scale = float(np.median(expected[len(known) :]) - expected[0]) if len(features) else 0.0
    chosen = np.append(0, 1 + np.argsort(means[1:], kind="stable")[:CANDIDATES])
    deviations, axes = np.linalg.eigh(covariance[np.ix_(chosen, chosen)])
    spread = axes * np.sqrt(np.maximum(deviations, 0.0))
    draws = rng.standard_normal((len(chosen), DRAWS))
    values = outlook.losses(means[chosen, None] + spread @ draws)
    gains = np.maximum(0.0, values[0] - values[1:].min(axis=0))
    return float(gains.mean()), scale


def notable(scale: float) -> float:
    """A gain that would be worth telling, with one digit."""
    return float(f"{NOTABLE * scale:.0e}")
