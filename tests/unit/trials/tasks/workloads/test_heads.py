"""Metrics where there is little to measure."""

import numpy as np
import pytest

from trials.tasks.workloads import heads as scores


def test_where_nothing_is_found_the_scores_are_numbers():
    nothing = np.zeros((4, 2), dtype=np.int8)
    assert scores.of_labels(nothing, nothing) == {
        "micro_f1": 0.0,
        "macro_f1": 0.0,
        "exact_match": 1.0,
    }
    truth = np.array([[1, 0], [0, 0]], dtype=np.int8)
    assert scores.of_labels(truth, truth)["macro_f1"] == 1.0, "nobody has the other label"
    numbers = np.array([1.0, 2.0, 4.0])
    alike = scores.of_numbers(numbers, np.ones(3), deviation=10.0)
    assert alike == pytest.approx({"mse": 1000 / 3, "mae": 40 / 3, "pearson": 0, "spearman": 0})
    broken = scores.of_numbers(numbers, np.array([1.0, np.nan, 2.0]), deviation=1.0)
    assert all(np.isnan(value) for value in broken.values())
