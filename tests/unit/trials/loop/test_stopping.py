"""The best report, and early stopping."""

import math

from trials.loop.stopping import EarlyStopping


def test_the_best_so_far_needs_only_to_be_better():
    stopping = EarlyStopping("max", patience=None, min_delta=0.1)
    assert [stopping.note(value) for value in (0.5, 0.5, 0.51, 0.4)] == [True, False, True, False]
    assert stopping.best == 0.51


def test_patience_counts_improvements_that_are_numbers_add_up_and_are_not_too_small():
    stopping = EarlyStopping("min", patience=2, min_delta=0.1)
    for value in (1.0, 0.95):
        stopping.note(value)
    assert stopping.exhausted is None
    stopping.note(0.92)
    assert stopping.exhausted == "no improvement for 2 reports"
    stopping.note(0.85)  # 0.15 below the value that counted
    assert stopping.exhausted is None
    stopping = EarlyStopping("max", patience=3, min_delta=0.1)
    for value in (0.1, 0.16, 0.22, 0.28, 0.34):
        stopping.note(value)
    assert stopping.exhausted is None
    stopping = EarlyStopping("max", patience=1, min_delta=0.0)
    assert not stopping.note(math.nan)
    assert stopping.exhausted == "no improvement for 1 report"
    assert stopping.best is None
