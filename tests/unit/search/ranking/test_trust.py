"""What is said of rungs: correlations and their intervals."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.trust import (
    Correlation,
    RungTrust,
    RungVerdict,
    TrialCurve,
    interval,
    rank_correlation,
    trust,
    unrestricted,
)

LEVELS = (1.0, 3.0, 9.0)


def curve(
    number: int, scores: Mapping[float, float], *, state: State = State.COMPLETE, rung: int = 1
) -> TrialCurve:
    return TrialCurve(number, state, rung, scores)


def in_full(number: int, at_one: float, at_end: float) -> TrialCurve:
    return curve(number, {1.0: at_one, 3.0: (at_one + at_end) / 2, 9.0: at_end})


def paused(number: int, at_one: float) -> TrialCurve:
    return curve(number, {1.0: at_one}, state=State.PRUNED, rung=0)


def test_the_rank_correlation_is_the_one_of_scipy_also_with_ties():
    draw = np.random.default_rng(0)
    for _ in range(20):
        one, other = draw.integers(0, 6, 12), draw.integers(0, 6, 12)
        expected = stats.spearmanr(one, other).statistic
        assert rank_correlation(list(one), list(other)) == pytest.approx(expected)


def test_there_is_no_correlation_where_all_are_equal_and_nothing_is_said_of_fewer_than_four():
    assert rank_correlation([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]) is None
    curves = [in_full(n, float(n), float(n)) for n in range(3)] + [paused(9, 5.0)]
    for rung in trust(curves, LEVELS):
        assert (rung.correlation, rung.finished) == (None, 3)
        assert rung.verdict is RungVerdict.UNKNOWN


def test_the_interval_is_that_of_bonett_and_wright():
    low, high = interval(0.5, 50)
    half = stats.norm.ppf(0.95) * math.sqrt((1 + 0.5**2 / 2) / 47)
    assert (low, high) == pytest.approx(
        (math.tanh(math.atanh(0.5) - half), math.tanh(math.atanh(0.5) + half))
    )


def test_a_perfect_order_of_a_few_is_not_taken_for_certain():
    low, high = interval(1.0, 4)
    assert low < 0
    assert high == 1.0
    low, _ = interval(1.0, 50)
    assert low > 0.99
    assert interval(-1.0, 4) == (-1.0, -interval(1.0, 4)[0])


def test_a_correlation_among_the_selected_is_corrected_to_that_among_all():
    draw = np.random.default_rng(1)
    at, noise = draw.normal(size=(2, 200_000))
    end = 0.7 * at + math.sqrt(1 - 0.7**2) * noise
    best = at < np.quantile(at, 1 / 9)
    among_selected = float(np.corrcoef(at[best], end[best])[0, 1])
    assert among_selected < 0.5
    wider = float(at.std() / at[best].std())
    assert unrestricted(among_selected, wider) == pytest.approx(0.7, abs=0.02)


def test_trials_that_still_run_or_have_failed_say_nothing_of_the_end():
    curves = [in_full(n, float(n), float(n)) for n in range(4)]
    curves += [curve(4, {1.0: 9.0, 3.0: 0.0}, state=State.RUNNING)]
    curves += [curve(5, {1.0: 9.0, 3.0: 0.0}, state=State.FAILED)]
    first, second = trust(curves, LEVELS)
    assert (first.reached, first.finished, first.paused) == (6, 4, 0)
    assert first.correlation is not None
    assert first.correlation.trials == 4
    assert second.reached == 6


def test_the_report_that_counts_is_the_first_one_at_or_past_the_rung():
    past = [curve(n, {1.0: -1.0, 2.0: float(n), 2.5: -float(n), 9.0: float(n)}) for n in range(5)]
    (rung, _) = trust(past, (1.5, 3.0, 9.0))
    assert rung.correlation is not None
    assert rung.correlation.value == pytest.approx(-1.0), "2.5 is after it, and is the best there"
    assert trust(past, (1.5, 3.0, 9.0))[1].reached == 0, "none reports from 3 to 9"


def test_the_report_at_the_rung_does_not_count_as_the_end():
    """Each trial's best report is its first one: that would be a perfect correlation."""
    ends = np.random.default_rng(5).normal(size=40)
    curves = []
    for number, end in enumerate(ends):
        curves.append(curve(number, {1.0: number - 1000.0, 9.0: float(end)}))
    first, _ = trust(curves, LEVELS)
    assert first.correlation is not None
    assert abs(first.correlation.value) < 0.4


def test_a_trial_without_a_value_at_the_rung_is_left_out():
    curves = [in_full(n, float(n), float(n)) for n in range(5)]
    curves.append(curve(5, {1.0: math.inf}, state=State.PAUSED, rung=0))
    assert trust(curves, LEVELS)[0].reached == 5


def test_the_spread_of_the_selected_ones_is_corrected():
    ends = [1.0, 3.0, 2.0, 4.0, 6.0, 5.0]
    full = [in_full(n, float(n), end) for n, end in enumerate(ends)]
    alone, _ = trust(full, LEVELS)
    selected, _ = trust(full + [paused(n, float(n)) for n in range(6, 40)], LEVELS)
    assert alone.correlation is not None
    assert selected.correlation is not None
    assert selected.correlation.value > alone.correlation.value
    assert selected.correlation.high > selected.correlation.value > selected.correlation.low


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.3, 0.9, RungVerdict.TELLS),
        (0.29, 0.9, RungVerdict.UNCLEAR),
        (-0.5, 0.29, RungVerdict.LITTLE),
    ],
)
def test_the_verdict_follows_from_the_interval(low, high, verdict):
    correlation = Correlation((low + high) / 2, low, high, 9)
    assert RungTrust(1.0, 20, 6, 5, 9, correlation).verdict is verdict
