"""The trials that a picture of a large study shows."""

from __future__ import annotations

from hpsearch.report.charts.chart import left_out, some_of


def test_of_many_trials_the_best_and_some_others_are_drawn() -> None:
    assert some_of(range(5), 9) == [0, 1, 2, 3, 4]
    chosen = some_of(range(1000), 60)
    assert chosen[:20] == list(range(20)), "a third of them are the best"
    assert len(chosen) == 60
    assert chosen == sorted(chosen)
    assert chosen[-1] == 999
    assert left_out(60, 1000, "curves") is not None
    assert left_out(5, 5, "curves") is None
