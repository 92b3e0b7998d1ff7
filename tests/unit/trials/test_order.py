"""Batches by a budget of tokens, and the order a run goes through its epochs in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trials.batching import token_batches
from trials.order import Order, most_samples
from trials.settings import Settings

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=300).map(np.array)


@given(LENGTHS, st.integers(1, 500), st.integers(0, 2**31), st.integers(0, 50), st.booleans())
def test_every_sample_comes_once_and_no_batch_exceeds_its_tokens(lengths, batch_tokens, seed, epoch, bucketing):
    batches = token_batches(lengths, batch_tokens, seed, epoch, bucketing)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert all(len(b) * lengths[b].max() <= batch_tokens or len(b) == 1 for b in batches)
    most = most_samples(lengths, Settings(batch_tokens=batch_tokens))
    assert max(map(len, batches)) <= most


def test_batches_are_nearly_as_large_as_their_tokens_allow():
    lengths = np.random.default_rng(0).integers(5, 60, 3000)
    cells = [len(b) * lengths[b].max() for b in token_batches(lengths, 1024, 0, 0, True)]
    assert sum(cells) / len(cells) > 0.9 * 1024
    assert sum(cells) < 1.1 * lengths.sum()


@given(LENGTHS, st.integers(1, 300), st.booleans())
def test_the_next_batch_is_a_function_of_where_the_run_stands(lengths, batch_tokens, bucketing):
    settings = Settings(batch_tokens=batch_tokens, bucketing=bucketing)
    straight, step, samples, seen = Order(lengths, settings, 1), 0, 0, []
    while samples < 2 * len(lengths):
        rows = straight.rows(step, samples)
        assert np.array_equal(rows, Order(lengths, settings, 1).rows(step, samples)), "one that has just been resumed"
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
