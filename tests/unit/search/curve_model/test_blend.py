"""Losses beside the objective: ranks, weights by what they told, and what enters and leaves."""

import math
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.search.curve_model.blend import (
    ASSUMED,
    ASSUMED_PAIRS,
    LEAST_TRIALS,
    Blend,
    Row,
    weights_of,
)

NUMBERS = st.floats(-100.0, 100.0)
LOSS = NUMBERS | st.just(math.nan)
CURVES = st.lists(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.3, 0.9]), st.tuples(NUMBERS, LOSS, LOSS)),
        min_size=1,
        max_size=3,
    ),
    max_size=12,
)
EQUAL = (1.0, 1.0, 1.0)


def blend_of(*rows: Row, share: float = 0.2) -> Blend:
    """Trials with what they reported at a share of the full budget."""
    blend = Blend()
    for row in rows:
        blend.enter(share, row)
    return blend


def test_a_trial_counts_as_if_it_had_the_rank_by_objective_that_it_has_by_loss():
    rows = [(10.0, 0.3), (20.0, 0.1), (30.0, 0.2)]
    blend = blend_of(*rows)
    counted = [blend.value(0.2, row, EQUAL) for row in rows]
    by_loss = [30.0, 10.0, 20.0]
    expected = [0.6 * row[0] + 0.4 * other for row, other in zip(rows, by_loss, strict=True)]
    assert counted == pytest.approx(expected)


def test_a_training_loss_counts_by_its_weight_and_one_that_a_trial_lacks_nothing():
    rows = [(1.0, 0.1, 0.3), (2.0, 0.2, 0.2), (3.0, 0.3, 0.1)]
    blend = blend_of(*rows, share=0.0)
    assert blend.value(0.0, rows[0], (1.0, 1.0, 2.0)) == pytest.approx((1 + 1 + 2 * 3) / 4)
    assert blend.value(0.0, rows[0], (0.0, 0.0, 1.0)) == pytest.approx(3.0)
    assert blend.value(0.0, rows[0], (0.0, 0.0, 0.0)) == 1.0
    rows = [(1.0, 0.1, math.nan), (2.0, 0.2, 0.2), (3.0, 0.3, 0.1), (4.0, 0.0, 0.3)]
    blend = blend_of(*rows, share=0.0)
    assert blend.value(0.0, rows[0], EQUAL) == pytest.approx((1 + 2) / 2)


def test_trials_of_one_value_are_told_apart_by_their_losses_among_those_that_differ():
    rows = [(0.5, 0.4), (0.5, 0.2), (0.5, 0.3), (0.1, 0.1)]
    blend = blend_of(*rows)
    counted = [blend.value(0.2, row, EQUAL) for row in rows]
    assert counted == pytest.approx([0.5, 0.5, 0.5, 0.1]), (
        "the second of four values is that of all the others"
    )
    blend.enter(0.2, (0.2, 0.25))
    assert blend.value(0.2, (0.5, 0.2), EQUAL) < blend.value(0.2, (0.5, 0.3), EQUAL)


def test_the_part_of_losses_falls_and_at_the_full_budget_the_objective_counts_alone():
    blend = Blend()
    shares = (0.0, 0.5, 1.0)
    for row in [(0.0, 3.0), (1.0, 2.0), (2.0, 1.0)]:
        for share in shares:
            blend.enter(share, row)
    counted = [blend.value(share, (2.0, 1.0), EQUAL) for share in shares]
    assert counted == pytest.approx([1.0, 1.5, 2.0])


def test_ranks_of_too_few_trials_say_nothing_and_weights_are_those_of_recorded_workloads():
    rows = [(float(n), -float(n)) for n in range(LEAST_TRIALS)]
    assert blend_of(*rows[:-1]).value(0.2, rows[0], EQUAL) == rows[0][0]
    assert blend_of(*rows).value(0.2, rows[0], EQUAL) > rows[0][0]
    assert weights_of([]) == pytest.approx([(2 * each - 1) ** 2 for each in ASSUMED])


@given(staying=CURVES, leaving=CURVES)
def test_who_enters_and_leaves_again_has_changed_nothing(staying, leaving):
    blend = Blend()
    alone = Blend()
    for row in chain(*staying):
        blend.enter(*row)
        alone.enter(*row)
    for row in chain(*leaving):
        blend.enter(*row)
    for row in chain(*leaving):
        blend.leave(*row)
    left = {place: both for place, both in blend._standings.items() if both[0]}
    assert left == alone._standings


def test_a_measure_that_foretold_the_order_weighs_more_than_one_that_did_not():
    told = [(0.2, (1.0, float(n), -float(n)), 1.0, float(n)) for n in range(8)]
    own, validation, training = weights_of(told)
    pairs = 8 * 7 / 2
    right = (ASSUMED[1] * ASSUMED_PAIRS + pairs) / (ASSUMED_PAIRS + pairs)
    assert validation == pytest.approx((2 * right - 1) ** 2)
    assert own < ASSUMED[0] ** 2 < validation, "equal values tell as little as a coin"
    assert training == 0.0


def test_only_trials_that_went_equally_far_from_one_place_are_compared():
    apart = [(0.2, (1.0, 1.0, 1.0), 0.6, 2.0), (0.2, (2.0, 2.0, 2.0), 1.0, 1.0)]
    assert weights_of(apart) == weights_of([])
    lacking = [(0.2, (1.0, math.nan, 1.0), 1.0, 1.0), (0.2, (2.0, math.nan, 2.0), 1.0, 2.0)]
    assert weights_of(lacking)[1] == weights_of([])[1]
    failed = [(0.2, (math.inf, math.nan, math.nan), 1.0, math.inf)] * 2
    assert weights_of(failed) == weights_of([])
