"""What is said of rungs: correlations, their intervals, and the share of wrongly paused trials."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import integrate, stats

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.ranking.trust import (
    ENOUGH_SPARED,
    Basis,
    Correlation,
    RungTrust,
    RungVerdict,
    TrialCourse,
    interval,
    normal_scores,
    rank_correlation,
    share_better,
    trust,
    unrestricted,
)

LEVELS = (1.0, 3.0, 9.0)


def course(
    number: int,
    scores: Mapping[float, float],
    *,
    state: State = State.COMPLETE,
    rung: int = 1,
    spared: bool = False,
    role: Role = Role.SEARCH,
) -> TrialCourse:
    return TrialCourse(number, state, role, rung, spared, scores)


def in_full(number: int, at_one: float, at_end: float, **more: bool) -> TrialCourse:
    return course(number, {1.0: at_one, 3.0: (at_one + at_end) / 2, 9.0: at_end}, **more)


def paused(number: int, at_one: float) -> TrialCourse:
    return course(number, {1.0: at_one}, state=State.PRUNED, rung=0)


def test_the_rank_correlation_is_the_one_of_scipy_also_with_ties() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        one, other = draw.integers(0, 6, 12), draw.integers(0, 6, 12)
        expected = stats.spearmanr(one, other).statistic
        assert rank_correlation(list(one), list(other)) == pytest.approx(expected)


def test_there_is_no_correlation_where_all_are_equal() -> None:
    assert rank_correlation([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]) is None


def test_the_interval_is_that_of_bonett_and_wright() -> None:
    low, high = interval(0.5, 50)
    half = stats.norm.ppf(0.95) * math.sqrt((1 + 0.5**2 / 2) / 47)
    assert (low, high) == pytest.approx(
        (math.tanh(math.atanh(0.5) - half), math.tanh(math.atanh(0.5) + half))
    )


def test_a_perfect_order_of_a_few_is_not_taken_for_certain() -> None:
    low, high = interval(1.0, 4)
    assert low < 0
    assert high == 1.0
    low, _ = interval(1.0, 50)
    assert low > 0.99
    assert interval(-1.0, 4) == (-1.0, -interval(1.0, 4)[0])


def test_a_correlation_among_the_selected_is_corrected_to_that_among_all() -> None:
    draw = np.random.default_rng(1)
    at, noise = draw.normal(size=(2, 200_000))
    end = 0.7 * at + math.sqrt(1 - 0.7**2) * noise
    best = at < np.quantile(at, 1 / 9)
    among_selected = float(np.corrcoef(at[best], end[best])[0, 1])
    assert among_selected < 0.5
    wider = float(at.std() / at[best].std())
    assert unrestricted(among_selected, wider) == pytest.approx(0.7, abs=0.02)


def test_the_share_that_would_win_is_the_integral_over_all_ends() -> None:
    at_rung, full = np.array([-0.3, 0.4]), np.array([0.1, 1.2, 0.9])
    r, rest = 0.6, 0.8

    def wins(end: float, place: float) -> float:
        below = np.prod(stats.norm.cdf((end - r * full) / rest))
        return float(below * stats.norm.pdf((end - r * place) / rest) / rest)

    expected = np.mean([integrate.quad(wins, -6, 6, args=(place,))[0] for place in at_rung])
    assert share_better(at_rung, full, r) == pytest.approx(expected, abs=1e-4)


def test_without_any_correlation_each_paused_trial_wins_as_often_as_any_in_full() -> None:
    scores = normal_scores([float(n) for n in range(12)])
    assert share_better(scores[:3], scores[3:], 0.0) == pytest.approx(1 / 10, abs=1e-3)


def test_with_fewer_than_four_trials_in_full_nothing_is_said() -> None:
    courses = [in_full(n, float(n), float(n)) for n in range(3)] + [paused(9, 5.0)]
    for rung in trust(courses, LEVELS):
        assert (rung.correlation, rung.wrongly_paused) == (None, None)
        assert (rung.finished, rung.verdict) == (3, RungVerdict.UNKNOWN)


def test_trials_that_still_run_or_have_failed_say_nothing_of_the_end() -> None:
    courses = [in_full(n, float(n), float(n)) for n in range(4)]
    courses += [course(4, {1.0: 9.0, 3.0: 0.0}, state=State.RUNNING)]
    courses += [course(5, {1.0: 9.0, 3.0: 0.0}, state=State.FAILED)]
    first, second = trust(courses, LEVELS)
    assert (first.reached, first.finished, first.paused) == (6, 4, 0)
    assert first.correlation is not None
    assert first.correlation.trials == 4
    assert second.reached == 6


def test_the_report_that_counts_is_the_first_one_at_or_past_the_rung() -> None:
    past = [course(n, {1.0: -1.0, 2.0: float(n), 2.5: -float(n), 9.0: float(n)}) for n in range(5)]
    (rung, _) = trust(past, (1.5, 3.0, 9.0))
    assert rung.correlation is not None
    assert rung.correlation.value == pytest.approx(-1.0), "2.5 is after it, and is the best there"
    assert trust(past, (1.5, 3.0, 9.0))[1].reached == 0, "none reports from 3 to 9"


def test_the_report_at_the_rung_does_not_count_as_the_end() -> None:
    """Each trial's best report is its first one: that would be a perfect correlation."""
    ends = np.random.default_rng(5).normal(size=40)
    courses = []
    for number, end in enumerate(ends):
        courses.append(course(number, {1.0: number - 1000.0, 9.0: float(end)}))
    first, _ = trust(courses, LEVELS)
    assert first.correlation is not None
    assert abs(first.correlation.value) < 0.4


def test_a_trial_without_a_value_at_the_rung_is_left_out() -> None:
    courses = [in_full(n, float(n), float(n)) for n in range(5)]
    courses.append(course(5, {1.0: math.inf}, state=State.PAUSED, rung=0))
    assert trust(courses, LEVELS)[0].reached == 5


def test_the_spread_of_the_selected_ones_is_corrected() -> None:
    ends = [1.0, 3.0, 2.0, 4.0, 6.0, 5.0]
    full = [in_full(n, float(n), end) for n, end in enumerate(ends)]
    alone, _ = trust(full, LEVELS)
    selected, _ = trust(full + [paused(n, float(n)) for n in range(6, 40)], LEVELS)
    assert alone.correlation is not None
    assert selected.correlation is not None
    assert selected.correlation.value > alone.correlation.value
    assert selected.correlation.high > selected.correlation.value > selected.correlation.low


def with_spared(spared: int, ends: Mapping[int, float] | None = None) -> list[TrialCourse]:
    """Ten trials that went on by their standing, thirty that paused, and spared ones among them."""
    courses = [in_full(n, float(n), float(n)) for n in range(10)]
    courses += [paused(n, float(n)) for n in range(10, 40)]
    for n in range(40, 40 + spared):
        courses.append(in_full(n, 20.5 + n, (ends or {}).get(n, float(n)), spared=True))
    return courses


def test_enough_spared_trials_are_used_alone_at_the_lowest_rung() -> None:
    few, _ = trust(with_spared(ENOUGH_SPARED - 1), LEVELS)
    enough, above = trust(with_spared(ENOUGH_SPARED), LEVELS)
    assert few.correlation is not None
    assert (few.correlation.spared, few.correlation.trials) == (False, 10 + ENOUGH_SPARED - 1)
    assert enough.correlation is not None
    assert (enough.correlation.spared, enough.correlation.trials) == (True, ENOUGH_SPARED)
    assert above.correlation is not None
    assert not above.correlation.spared


def test_spared_trials_show_how_many_were_wrongly_paused() -> None:
    first, second = trust(with_spared(4, {41: -1.0}), LEVELS)
    found = first.wrongly_paused
    assert found is not None
    assert (found.share, found.basis, found.trials) == (0.25, Basis.SPARED, 4)
    assert (found.low, found.high) == pytest.approx(tuple(stats.beta(1.5, 3.5).ppf([0.05, 0.95])))
    assert second.wrongly_paused is None, "no trial paused at the second rung"


def test_a_few_spared_trials_leave_the_share_to_the_model() -> None:
    found = trust(with_spared(3), LEVELS)[0].wrongly_paused
    assert found is not None
    assert (found.basis, found.trials) == (Basis.MODEL, 30)
    assert 0 <= found.low <= found.share <= found.high <= 1


def test_a_spared_trial_that_a_lower_rung_would_have_paused_was_not_paused_by_this_one() -> None:
    courses = [in_full(n, float(n), float(n)) for n in range(10)]
    courses += [paused(n, float(n)) for n in range(10, 40)]
    courses += [
        course(n, {1.0: float(n) - 37.5, 3.0: 50.0 + n}, state=State.PAUSED) for n in range(40, 44)
    ]
    spared = [in_full(n, 50.0 + n, 90.0 + n, spared=True) for n in range(44, 50)]
    first, second = trust(courses + spared, LEVELS)
    assert first.wrongly_paused is not None
    assert first.wrongly_paused.basis is Basis.SPARED
    assert second.wrongly_paused is not None
    assert second.wrongly_paused.basis is Basis.MODEL, "the second rung has not judged them"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.3, 0.9, RungVerdict.TELLS),
        (0.29, 0.9, RungVerdict.UNCLEAR),
        (-0.5, 0.29, RungVerdict.LITTLE),
    ],
)
def test_the_verdict_follows_from_the_interval(
    low: float, high: float, verdict: RungVerdict
) -> None:
    correlation = Correlation((low + high) / 2, low, high, 9, spared=False)
    assert RungTrust(1.0, 20, 11, 9, correlation, None).verdict is verdict
