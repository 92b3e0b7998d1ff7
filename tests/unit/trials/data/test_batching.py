"""Batches and their order."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trials.data.batching import Sequences, cut, epoch_batches, longest_batch

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=400).map(np.array)


@given(LENGTHS, st.integers(1, 40), st.integers(0, 2**31), st.integers(0, 50), st.booleans())
def test_every_sample_comes_exactly_once_an_epoch(lengths, batch_size, seed, epoch, bucketing):
    batches = epoch_batches(lengths, batch_size, seed, epoch, bucketing)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert len(batches) == math.ceil(len(lengths) / batch_size)
    assert sum(len(batch) != batch_size for batch in batches) <= 1


@given(LENGTHS, st.integers(1, 40), st.integers(0, 2**31), st.booleans())
def test_the_order_is_a_function_of_seed_and_epoch(lengths, batch_size, seed, bucketing):
    once, again = (epoch_batches(lengths, batch_size, seed, 3, bucketing) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))


def test_epochs_and_seeds_differ_in_order_and_in_who_shares_a_batch():
    lengths = np.random.default_rng(0).integers(5, 50, 1000)
    for bucketing in (True, False):
        orders = [
            epoch_batches(lengths, 16, seed, epoch, bucketing)
            for seed, epoch in ((1, 0), (1, 1), (2, 0))
        ]
        companies = [{frozenset(batch.tolist()) for batch in order} for order in orders]
        assert all(len(a & b) < 5 for a, b in itertools.pairwise(companies))


def test_bucketing_keeps_most_padding_away():
    lengths = np.random.default_rng(0).integers(5, 100, 2000)

    def cells(bucketing):
        return sum(len(b) * lengths[b].max() for b in epoch_batches(lengths, 16, 0, 0, bucketing))

    assert cells(True) < 1.1 * lengths.sum() < 1.5 * lengths.sum() < cells(False)


def test_the_longest_batch_holds_the_longest():
    assert longest_batch(np.array([3, 9, 1, 7]), 2).tolist() == [1, 3]


def test_a_batch_is_cut_in_order():
    parts = cut(np.arange(7), 3)
    assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5], [6]]


def test_sequences_are_rows_of_different_lengths():
    sequences = Sequences.of([[1, 2, 3], [4], [5, 6]])
    assert sequences.lengths.tolist() == [3, 1, 2]
    assert [sequences.row(number).tolist() for number in range(3)] == [[1, 2, 3], [4], [5, 6]]
