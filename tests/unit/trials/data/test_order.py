"""Batches by a budget of tokens, and the order a run goes through its epochs in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trials.data.batching import cost, epoch_batches, parts_of, token_batches
from trials.data.order import BatchOrder, most_samples
from trials.settings import Settings

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=300).map(np.array)
PAIRS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=120).map(
    np.array
)
"""Sources and targets, which are padded each by itself."""


def cells(lengths, rows):
    """Tokens and padding of a batch."""
    return len(rows) * int(parts_of(lengths)[rows].max(axis=0).sum())


def cost_of(lengths, rows):
    return float(cost(len(rows), parts_of(lengths)[rows].max(axis=0)))


@given(LENGTHS, st.integers(1, 500), st.integers(0, 2**31), st.integers(0, 50), st.booleans())
def test_every_sample_comes_once_and_no_batch_exceeds_its_tokens(
    lengths, batch_tokens, seed, epoch, bucketing
):
    batches = token_batches(lengths, batch_tokens, seed, epoch, bucketing)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert all(len(b) * lengths[b].max() <= batch_tokens or len(b) == 1 for b in batches)
    most = most_samples(lengths, Settings(batch_tokens=batch_tokens))
    assert max(map(len, batches)) <= most


@given(PAIRS, st.integers(1, 500), st.integers(0, 2**31), st.integers(0, 50), st.booleans())
def test_source_and_target_are_counted_as_they_are_padded(
    lengths, batch_tokens, seed, epoch, bucketing
):
    batches = token_batches(lengths, batch_tokens, seed, epoch, bucketing)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert all(cells(lengths, b) <= batch_tokens or len(b) == 1 for b in batches)
    most = most_samples(lengths, Settings(batch_tokens=batch_tokens))
    assert max(map(len, batches)) <= most


@given(
    PAIRS | LENGTHS, st.integers(1, 500), st.integers(0, 2**31), st.integers(0, 50), st.booleans()
)
def test_no_batch_of_tokens_costs_twice_what_the_one_that_is_rehearsed_does(
    lengths, batch_tokens, seed, epoch, bucketing
):
    settings = Settings(batch_tokens=batch_tokens, bucketing=bucketing)
    rehearsed = BatchOrder(lengths, settings, seed).longest()
    assert len(set(rehearsed)) == len(rehearsed)
    assert cells(lengths, rehearsed) <= batch_tokens or len(rehearsed) == 1
    costs = [
        cost_of(lengths, b) for b in token_batches(lengths, batch_tokens, seed, epoch, bucketing)
    ]
    assert max(costs) <= 2 * cost_of(lengths, rehearsed)


@given(
    PAIRS | LENGTHS, st.integers(1, 50), st.integers(0, 2**31), st.integers(0, 50), st.booleans()
)
def test_no_batch_of_samples_costs_more_than_the_one_that_is_rehearsed(
    lengths, batch_size, seed, epoch, bucketing
):
    rehearsed = BatchOrder(
        lengths, Settings(batch_size=batch_size, bucketing=bucketing), seed
    ).longest()
    assert len(rehearsed) == len(set(rehearsed)) == min(batch_size, len(lengths))
    for batch in epoch_batches(lengths, batch_size, seed, epoch, bucketing):
        assert cost_of(lengths, batch) <= cost_of(lengths, rehearsed) * (1 + 1e-12)
        assert batch_size == 1 or cells(lengths, batch) <= cells(lengths, rehearsed)


def test_the_costliest_of_many_different_lengths_is_found_quickly():
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 60_000, (20_000, 2))
    rehearsed = BatchOrder(lengths, Settings(batch_tokens=1_000_000), 0).longest()
    batches = token_batches(lengths, 1_000_000, 0, 0, True)
    assert cells(lengths, rehearsed) <= 1_000_000
    assert max(cost_of(lengths, b) for b in batches) <= 1.05 * cost_of(lengths, rehearsed)


def test_batches_are_nearly_as_large_as_their_tokens_allow():
    lengths = np.random.default_rng(0).integers(5, 60, 3000)
    sizes = [cells(lengths, b) for b in token_batches(lengths, 1024, 0, 0, True)]
    assert sum(sizes) / len(sizes) > 0.9 * 1024
    assert sum(sizes) < 1.1 * lengths.sum()


@given(LENGTHS, st.integers(1, 300), st.booleans())
def test_the_next_batch_is_a_function_of_where_the_run_stands(lengths, batch_tokens, bucketing):
    settings = Settings(batch_tokens=batch_tokens, bucketing=bucketing)
    straight, step, samples, seen = BatchOrder(lengths, settings, 1), 0, 0, []
    while samples < 2 * len(lengths):
        rows = straight.rows(step, samples)
        assert np.array_equal(rows, BatchOrder(lengths, settings, 1).rows(step, samples)), (
            "one that has just been resumed"
        )
        seen.append(rows)
        step, samples = step + 1, samples + len(rows)
    assert straight.epochs(step, samples) == 2.0
    assert sorted(np.concatenate(seen)) == sorted([*range(len(lengths))] * 2)


def test_a_run_by_tokens_resumes_bit_for_bit(lab, without_timings):
    params = {"batch_tokens": 90, "learning_rate": 0.01}
    task = lab.task()
    data = task.prepare(params)
    per_trial = {"epochs": 2, "report_every": 0.5}
    whole = [r for r in task.start(lab.setup("a", per_trial, **params), data) if r is not None]
    run = task.start(lab.setup("b", per_trial, **params), data)
    iterator = iter(run)
    for _ in range(5):
        next(iterator)
    resumed = task.start(lab.setup("b", per_trial, run.save(), **params), data)
    rest = [r for r in resumed if r is not None]
    assert [r.resource for r in whole] == [0.5, 1.0, 1.5, 2.0]
    assert without_timings(rest) == without_timings(whole)[-len(rest) :]
