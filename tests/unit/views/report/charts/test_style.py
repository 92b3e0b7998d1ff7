"""Axes that leave little out, units that suit the values, and the trials that are drawn of many."""

from hpsearch.views.report.charts.style import left_out, some_of, time_scale, value_range


def test_a_few_values_far_worse_than_all_others_lie_outside():
    usual = [0.8 + n / 1000 for n in range(100)]
    limits = value_range([*usual, -50.0, -80.0], maximize=True)
    assert limits is not None
    assert limits[0] > 0.7
    assert limits[1] > max(usual), "the best are never outside"
    assert value_range(usual, maximize=True) is None
    assert value_range([], maximize=False) is None


def test_times_are_in_a_unit_that_suits_them():
    assert time_scale(90.0) == (1.0, "seconds")
    assert time_scale(3 * 3600.0) == (3600.0, "hours")
    assert time_scale(5 * 86400.0)[1] == "days"


def test_of_many_trials_the_best_and_some_others_are_drawn():
    assert some_of(range(5), 9) == [0, 1, 2, 3, 4]
    chosen = some_of(range(1000), 60)
    assert chosen[:20] == list(range(20)), "a third of them are the best"
    assert len(chosen) == 60
    assert chosen == sorted(chosen)
    assert chosen[-1] == 999
    assert left_out(60, 1000, "curves") is not None
    assert left_out(5, 5, "curves") is None
