"""The validation loss beside the objective: ranks, weights, and taking back what has entered."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.search.curve_model.blend import LEAST_TRIALS, MOST, LossBlend

NUMBERS = st.floats(-100.0, 100.0)
CURVES = st.lists(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.3, 0.9]), NUMBERS, NUMBERS),
        min_size=1,
        max_size=3,
    ),
    max_size=12,
)


def blend_of(*rows: tuple[float, float]) -> LossBlend:
    """Trials with a value and a loss at a share of 0.2."""
    blend = LossBlend()
    for value, loss in rows:
        blend.enter(0.2, value, loss)
    return blend


def test_a_trial_counts_as_if_it_had_the_rank_by_objective_that_it_has_by_loss() -> None:
    blend = blend_of((10.0, 0.3), (20.0, 0.1), (30.0, 0.2))
    weight = MOST * 0.8
    counted = [blend.value(0.2, *row) for row in [(10.0, 0.3), (20.0, 0.1), (30.0, 0.2)]]
    by_loss = [30.0, 10.0, 20.0]
    values = [10.0, 20.0, 30.0]
    expected = [
        (1 - weight) * value + weight * other for value, other in zip(values, by_loss, strict=True)
    ]
    assert counted == pytest.approx(expected)


def test_trials_of_one_value_are_told_apart_by_their_losses_among_those_that_differ() -> None:
    rows = [(0.5, 0.4), (0.5, 0.2), (0.5, 0.3), (0.1, 0.1)]
    blend = blend_of(*rows)
    counted = [blend.value(0.2, *row) for row in rows]
    assert counted == [0.5, 0.5, 0.5, 0.1], "the second of four values is that of all the others"
    blend.enter(0.2, 0.2, 0.25)
    assert blend.value(0.2, 0.5, 0.2) < blend.value(0.2, 0.5, 0.3)


def test_the_weight_of_the_loss_falls_and_at_the_full_budget_the_objective_counts_alone() -> None:
    blend = LossBlend()
    shares = (0.0, 0.5, 1.0)
    for value, loss in [(0.0, 3.0), (1.0, 2.0), (2.0, 1.0)]:
        for share in shares:
            blend.enter(share, value, loss)
    counted = [blend.value(share, 2.0, 1.0) for share in shares]
    assert counted == pytest.approx([2.0 - 2.0 * MOST, 2.0 - 1.0 * MOST, 2.0])


def test_ranks_of_too_few_trials_say_nothing() -> None:
    rows = [(float(n), -float(n)) for n in range(LEAST_TRIALS)]
    assert blend_of(*rows[:-1]).value(0.2, *rows[0]) == rows[0][0]
    assert blend_of(*rows).value(0.2, *rows[0]) > rows[0][0]


@given(staying=CURVES, leaving=CURVES)
def test_who_enters_and_leaves_again_has_changed_nothing(
    staying: list[list[tuple[float, float, float]]], leaving: list[list[tuple[float, float, float]]]
) -> None:
    blend = LossBlend()
    alone = LossBlend()
    for row in chain(*staying):
        blend.enter(*row)
        alone.enter(*row)
    for row in chain(*leaving):
        blend.enter(*row)
    for row in chain(*leaving):
        blend.leave(*row)
    for share in (0.1, 0.3, 0.9):
        assert blend._values[share] == alone._values[share]
        assert blend._losses[share] == alone._losses[share]
