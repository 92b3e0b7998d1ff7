"""The best report, and early stopping."""

from __future__ import annotations

import math

from trials.loop.stopping import Progress


def test_the_best_so_far_needs_only_to_be_better():
    progress = Progress("max", patience=None, min_delta=0.1)
    assert [progress.note(value) for value in (0.5, 0.5, 0.51, 0.4)] == [True, False, True, False]
    assert progress.best == 0.51


def test_patience_asks_for_more_than_the_smallest_improvement():
    progress = Progress("min", patience=2, min_delta=0.1)
    for value in (1.0, 0.95):
        progress.note(value)
    assert progress.exhausted is None
    progress.note(0.92)
    assert progress.exhausted == "no improvement for 2 reports"
    progress.note(0.85)  # 0.15 below the value that counted
    assert progress.exhausted is None


def test_small_improvements_add_up_to_one_that_counts():
    progress = Progress("max", patience=3, min_delta=0.1)
    for value in (0.1, 0.16, 0.22, 0.28, 0.34):
        progress.note(value)
    assert progress.exhausted is None


def test_what_is_no_number_is_never_an_improvement():
    progress = Progress("max", patience=1, min_delta=0.0)
    assert not progress.note(math.nan)
    assert progress.exhausted == "no improvement for 1 report"
    assert progress.best is None
