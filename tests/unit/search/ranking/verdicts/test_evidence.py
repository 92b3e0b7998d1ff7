"""The evidence in paired differences: what it is worth, and that looking often costs nothing."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from hpsearch.search.ranking.verdicts.evidence import SCALE, e_value, lower_bound, needed


@pytest.mark.parametrize("differences", [[0.3], [1.0, 2.0, 0.5], [-1.0, 0.2, -0.4, 0.1]])
def test_the_evidence_is_the_bayes_factor_of_a_half_normal_effect(differences):
    pairs = len(differences)
    s = sum(differences) / math.sqrt(sum(each**2 for each in differences))
    precision = pairs + 1 / SCALE**2

    def above(v):
        at = v * s / math.sqrt(precision)
        weight = v ** (pairs - 1) * math.exp(-(v**2) / 2 + at**2 / 2) * ndtr(at)
        return 2 / math.sqrt(1 + pairs * SCALE**2) * weight

    def at_zero(v):
        return v ** (pairs - 1) * math.exp(-(v**2) / 2)

    expected = quad(above, 0, 60)[0] / quad(at_zero, 0, 60)[0]
    assert e_value(differences) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("mean", [0.0, -0.3])
def test_at_most_one_of_twenty_is_ever_shown_of_what_is_not_there_however_often_one_looks(mean):
    random = np.random.default_rng(0)
    studies, looks = 600, 60
    shown, fives = 0, []
    for _ in range(studies):
        differences = (mean + random.standard_normal(looks)).tolist()
        shown += any(e_value(differences[:seen]) >= 20 for seen in range(1, looks + 1))
        fives.append(min(e_value(differences[:5]), 100.0))
    assert shown / studies <= 0.05
    assert np.mean(fives) <= 1.1


def test_a_gain_of_some_deviations_is_shown_by_a_handful_of_pairs():
    random = np.random.default_rng(0)
    gains = [(2.8 + random.standard_normal(5)).tolist() for _ in range(200)]
    assert np.mean([lower_bound(each, 0.95) > 0 for each in gains]) > 0.8


def test_the_bound_is_where_the_evidence_is_as_strong_as_the_level_asks():
    differences = [0.021, 0.013, 0.034, 0.008, 0.025, 0.019]
    bound = lower_bound(differences, 0.95)
    assert 0 < bound < 0.021
    assert e_value(differences, bound) == pytest.approx(20)
    assert lower_bound(differences, 0.99) < bound
    moved = [each + 1 for each in differences]
    assert lower_bound(moved, 0.95) == pytest.approx(bound + 1)


def test_equal_differences_count_by_their_signs_alone():
    assert lower_bound([0.01] * 4, 0.95) == -math.inf
    assert lower_bound([0.01] * 5, 0.95) == pytest.approx(0.01)
    assert lower_bound([0.0] * 9, 0.95) == pytest.approx(0)
    assert e_value([0.03 - 0.02, 0.02 - 0.01, 0.01]) == pytest.approx(8)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_the_size_of_differences_is_of_no_matter(size):
    assert lower_bound([], 0.95) == -math.inf
    assert e_value([]) == 1
    bound = lower_bound([1 * size, 2 * size, 1.5 * size, 1.2 * size], 0.95)
    assert bound / size == pytest.approx(lower_bound([1, 2, 1.5, 1.2], 0.95))
    assert math.isfinite(e_value([size] * 5_000))


def test_what_is_needed_is_what_the_same_differences_again_would_take():
    differences = [0.02, 0.0, 0.03, -0.01]
    more = needed(differences, 0.95)
    again = differences * 50
    taken = next(n for n in range(4, 200, 4) if e_value(again[:n]) >= 20)
    assert more is not None
    assert abs(4 + more - taken) <= 4
    assert needed([0.02, 0.021, 0.022, 0.02, 0.021], 0.95) == 0
    assert needed([0.01], 0.95) is None
    assert needed([-0.01, 0.0], 0.95) is None
    assert needed([1e-9, 1.0, -1.0], 0.95) is None
