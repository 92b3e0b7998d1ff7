"""The verdict on changed code, by campaigns of changes whose gains are known."""

import random
from itertools import pairwise

import pytest

from hpsearch.domain.facts import CodeVerdict
from hpsearch.search.ranking.verdicts.referee import FEWEST, LEVEL, MOST, level_of, ruling


def campaign(gains, seed):
    """The verdicts on changes with these gains, in deviations of a pair's difference, and the pairs
    of each."""
    draw, kept, found = random.Random(seed), 0, []
    for number, gain in enumerate(gains, 1):
        base, changed = [], []
        verdict = CodeVerdict.OPEN
        while verdict is CodeVerdict.OPEN:
            base.append(draw.gauss(0, 0.6))
            changed.append(base[-1] - draw.gauss(gain, 1))
            verdict = ruling(changed, base, 1.0, level_of(number, kept)).verdict
        kept += verdict is CodeVerdict.KEEP
        found.append((verdict is CodeVerdict.KEEP, len(base)))
    return found


def test_of_many_changes_that_change_nothing_none_is_kept_and_few_pairs_are_spent():
    found = [each for seed in range(2) for each in campaign([0.0] * 300, seed)]
    assert sum(kept for kept, _ in found) == 0
    assert sum(pairs for _, pairs in found) / len(found) < 6


def test_most_changes_with_a_real_gain_are_kept_among_others_that_change_nothing():
    gains = ([0.0] * 9 + [1.5]) * 6
    found = [each for seed in range(2) for each in campaign(gains, seed)]
    real = [each for each, gain in zip(found, gains * 2, strict=True) if gain]
    assert sum(kept for kept, _ in real) >= 0.8 * len(real)
    assert sum(pairs for _, pairs in real) / len(real) < 20
    others = [kept for (kept, _), gain in zip(found, gains * 2, strict=True) if not gain]
    assert sum(others) <= 1


def test_the_levels_of_a_campaign_without_any_kept_sum_to_no_more_than_its_error():
    levels = [level_of(number, 0) for number in range(1, 20_000)]
    assert 0.8 * LEVEL < sum(levels) < LEVEL
    assert all(later < earlier for earlier, later in pairwise(levels))
    assert level_of(9, 3) == pytest.approx(4 * level_of(9, 0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_clear_gain_is_kept_with_the_least_that_it_may_be(sign):
    draw = random.Random(4)
    base = [5 + draw.gauss(0, 0.1) for _ in range(12)]
    changed = [each - sign * (1 + draw.gauss(0, 0.1)) for each in base]
    found = ruling(changed, base, sign, level_of(1, 0))
    assert (found.verdict, found.evidence > 40) == (CodeVerdict.KEEP, True)
    assert found.why.startswith("better by ")
    assert 0.5 < float(found.why.split("at least ")[1].split(")")[0]) < 1
    assert ruling(base, changed, sign, level_of(1, 0)).verdict is CodeVerdict.DISCARD


def test_nothing_is_decided_by_fewer_pairs_than_needed_nor_open_after_the_most():
    assert ruling([0.0] * 2, [9.0, 9.5], 1.0, 1.0).why == f"2 of at least {FEWEST} pairs"
    draw = random.Random(1)
    base = [draw.gauss(0, 1) for _ in range(MOST)]
    changed = [each - draw.gauss(0.4, 1) for each in base]
    assert ruling(changed, base, 1.0, level_of(300, 0)).verdict is CodeVerdict.DISCARD


def test_a_gain_that_is_not_shown_yet_says_how_much_more_would_decide():
    found = ruling([1.0, 1.2, 0.9, 1.1], [1.9, 1.5, 2.2, 1.7], 1.0, level_of(1, 0))
    assert found.verdict is CodeVerdict.OPEN
    assert found.why == "better by 0.775 so far, over 4 pairs; about 3 more would decide"


def test_a_change_that_sets_its_seed_or_changes_nothing_gets_nothing():
    base = [0.51, 0.48, 0.53, 0.5]
    lucky = ruling([0.2] * 4, base, 1.0, 1.0)
    assert lucky.why == "it ignores its seed: 4 seeds give equal values"
    assert ruling([0.2, 0.2, 0.2, 0.2], [0.5] * 4, 1.0, 1.0).verdict is not CodeVerdict.OPEN
    assert ruling(base, base, 1.0, 1.0).why == "it changes nothing: all 4 pairs are equal"


def test_a_change_whose_results_cannot_be_better_does_not_ignore_its_seed():
    base = [0.21, 0.19, 0.22, 0.2]
    assert "ignores its seed" in ruling([0.0] * 4, base, 1.0, 1.0, best=-1.0).why
    assert ruling([0.0] * 4, base, 1.0, 1.0, best=0.0).verdict is CodeVerdict.KEEP
