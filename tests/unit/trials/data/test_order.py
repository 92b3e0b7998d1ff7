"""The order a run goes through its epochs in, and the batch that is rehearsed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trials.data.batching import cost, epoch_batches, parts_of
from trials.data.order import BatchOrder
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


@given(
    PAIRS | LENGTHS, st.integers(1, 50), st.integers(0, 2**31), st.integers(0, 50), st.booleans()
)
def test_no_batch_costs_more_than_the_one_that_is_rehearsed(
    lengths, batch_size, seed, epoch, bucketing
):
    rehearsed = BatchOrder(
        lengths, Settings(batch_size=batch_size, bucketing=bucketing), seed
    ).longest()
    assert len(rehearsed) == len(set(rehearsed)) == min(batch_size, len(lengths))
    for batch in epoch_batches(lengths, batch_size, seed, epoch, bucketing):
        assert cost_of(lengths, batch) <= cost_of(lengths, rehearsed) * (1 + 1e-12)
        assert batch_size == 1 or cells(lengths, batch) <= cells(lengths, rehearsed)


@given(LENGTHS, st.integers(1, 50), st.booleans())
def test_the_next_batch_is_a_function_of_the_step(lengths, batch_size, bucketing):
    settings = Settings(batch_size=batch_size, bucketing=bucketing)
    straight, step, seen = BatchOrder(lengths, settings, 1), 0, []
    while straight.epochs(step) < 2:
        rows = straight.rows(step)
        assert np.array_equal(rows, BatchOrder(lengths, settings, 1).rows(step)), (
            "one that has just been resumed"
        )
        seen.append(rows)
        step += 1
    assert sorted(np.concatenate(seen)) == sorted([*range(len(lengths))] * 2)
