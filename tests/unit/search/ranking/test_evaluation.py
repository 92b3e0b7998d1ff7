"""What the samples behind an accuracy tell of the luck in it."""

import numpy as np
import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.evaluation import evaluation_of
from hpsearch.search.ranking.selection import rank


@pytest.mark.parametrize("samples", [53, 171, 600, 3080])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("sign", [1, -1])
def test_shares_tell_of_how_many_samples_they_are(samples, kind, sign):
    right = [samples - 3 * n**2 - 1 for n in range(1, 5)]
    found = evaluation_of([sign * float(kind(each / samples)) for each in right])
    assert found is not None
    assert found.samples == samples


@pytest.mark.parametrize(
    "ends",
    [
        [0.91, 0.9, 0.87, 0.83, 0.8],  # may be rounded
        [0.912, 0.906, 0.873, 0.831],
        [0.3712345, 0.3956123, 0.412341, 0.5],  # a loss
        [93.5, 92.0, 91.5],
        [-1.5, -0.75, -0.675, -0.025],  # no share is above 1
        [-0.175, -0.05, 0.025, 0.1],  # or of either sign
        [1.0, 1.0, 0.5, 0.5],
        [float("1e-300"), 0.5, 0.25],
        [],
    ],
)
def test_what_is_no_share_of_samples_tells_nothing(ends):
    assert evaluation_of(ends) is None


def test_the_best_of_many_equal_ones_is_luckier_than_one_that_is_far_ahead():
    near = evaluation_of([share / 300 for share in (280, 279, 278, 277, 276, 275)])
    ahead = evaluation_of([share / 300 for share in (280, 240, 239, 238, 237, 235)])
    assert near is not None
    assert ahead is not None
    assert near.luck > near.deviation(280 / 300)
    assert ahead.luck == 0


def test_a_study_of_numbers_that_lie_on_a_grid_is_ranked_also_where_some_are_no_shares():
    values = [0.025, 0.05, 0.125, 0.175, 0.3] * 4 + [1.5]
    trials = [
        Trial(n, State.COMPLETE, {}, value=value, resource=9) for n, value in enumerate(values)
    ]
    assert rank(trials, "minimize")[-1].trial.value == 1.5
    assert rank(trials, "maximize")[0].trial.value == 1.5


def test_intervals_hold_nine_in_ten_trainings_that_differ_by_their_samples_alone():
    draw, samples, hits = np.random.default_rng(0), 200, []
    unsure, right = 40, 145  # samples that a seed decides, and those that all models answer
    for _ in range(200):
        ends = (right + draw.binomial(unsure, 0.75, 13)) / samples
        trials = [
            Trial(n, State.COMPLETE, {}, value=float(end), resource=9, expected_deviation=0.001)
            for n, end in enumerate(ends[:12])
        ]
        again = rank(trials, "maximize", "accuracy")[0].again
        assert again is not None
        hits.append((again.low or 0.0) <= ends[12] <= (again.high or 1.0))
    assert 0.85 <= np.mean(hits) <= 0.99
