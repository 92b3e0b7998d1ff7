"""The metrics of classes against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from trials.tasks.workloads.metrics import classification

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)


@given(PAIRS)
@pytest.mark.filterwarnings(
    "ignore:A single label was found:UserWarning"
)  # said of scikit-learn's own matrix
def test_metrics_equal_those_of_scikit_learn(pairs):
    truth, predicted = np.array(pairs).T
    assert classification(truth, predicted) == pytest.approx(
        {
            "accuracy": accuracy_score(truth, predicted),
            "macro_f1": f1_score(truth, predicted, average="macro", zero_division=0),
            "mcc": matthews_corrcoef(truth, predicted),
        }
    )
