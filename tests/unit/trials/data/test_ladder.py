"""Ladders of padded lengths: few rungs, little padding, and never a length below a sample's."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trials.data import ladder
from trials.data.batching import epoch_batches

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60).map(np.array)


def growth(longest, rungs):
    """The cells that a ladder adds to batches that it covers, as a share of those without it."""
    covered = longest[longest <= rungs[-1]]
    padded = np.array([ladder.fitted(rungs, int(each)) for each in covered])
    assert (padded >= covered).all()
    return padded.sum() / covered.sum() - 1


@given(LENGTHS)
@settings(max_examples=200)
def test_a_ladder_has_few_rungs_and_adds_at_most_a_tenth(longest):
    rungs = ladder.rungs(longest)
    assert 1 <= len(rungs) <= ladder.MOST_RUNGS
    assert list(rungs) == sorted(set(rungs))
    assert set(rungs) <= set(longest)
    assert growth(longest, rungs) <= ladder.GROWTH + 1e-9


@given(st.lists(st.integers(1, 25), min_size=1, max_size=12).map(np.array))
@settings(max_examples=100)
def test_no_ladder_has_fewer_rungs_or_as_many_and_less_padding(longest):
    rungs = ladder.rungs(longest, most=3)
    top = longest.max()
    lower = sorted(set(longest) - {top})

    def least(count):
        """The least growth by so many rungs that cover all batches."""
        ladders = itertools.combinations(lower, min(count - 1, len(lower)))
        return min(growth(longest, np.array([*chosen, top])) for chosen in ladders)

    if rungs[-1] < top:
        assert least(3) > ladder.GROWTH
        return
    assert growth(longest, rungs) == pytest.approx(least(len(rungs)))
    assert len(rungs) == 1 or least(len(rungs) - 1) > ladder.GROWTH


def test_a_batch_above_the_ladder_keeps_its_length_and_an_evaluation_has_a_ladder_of_its_own():
    rungs = np.array([8, 16])
    assert [ladder.fitted(rungs, length) for length in (1, 8, 9, 16, 17)] == [8, 8, 16, 16, None]
    lengths = np.array([3, 3, 5, 9, 9, 12])
    assert ladder.of_evaluation(lengths, 2).tolist() == [3, 9, 12]


@pytest.mark.parametrize("bucketing", [True, False])
def test_other_epochs_than_the_one_looked_at_are_padded_as_little(bucketing):
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(2.6, 0.45, 3000).astype(int) + 3, 4, 64)
    rungs = ladder.of_training(lengths, 32, bucketing)
    batches = epoch_batches(lengths, 32, seed=7, epoch=3, bucketing=bucketing)
    longest = np.array([lengths[rows].max() for rows in batches])
    assert growth(longest, rungs) <= ladder.GROWTH + 0.03
    assert (longest <= rungs[-1]).mean() > 0.9


def test_a_large_data_set_is_looked_at_in_part():
    lengths = np.tile(np.array([4, 60]), 200_000)
    assert ladder.of_training(lengths, 32, bucketing=False).tolist() == [60]
