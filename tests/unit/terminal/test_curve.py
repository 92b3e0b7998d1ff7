"""A learning curve as lines of text."""

from __future__ import annotations

import math

from hpsearch.terminal.curve import DOT, HEIGHT, curve


def test_the_ends_of_both_axes_are_named_and_every_point_has_its_column():
    drawn = curve([(1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)], 40)
    assert drawn is not None
    lines = drawn.splitlines()
    assert len(lines) == HEIGHT + 1
    assert lines[0].startswith("   1 ┤")
    assert lines[0].endswith(DOT)
    assert lines[HEIGHT - 1].startswith(f"0.25 ┤{DOT}")
    assert lines[-1].split() == ["1", "4"]
    assert drawn.count(DOT) == 4
    assert max(map(len, lines)) <= 40


def test_a_flat_curve_and_huge_values_are_drawn():
    assert curve([(1, 2.0), (2, 2.0)], 40).count(DOT) == 2
    assert curve([(1, -1.7e308), (2, 1.7e308)], 60).count(DOT) == 2


def test_nothing_is_drawn_of_one_point_or_in_no_room():
    assert curve([(1, 2.0), (2, math.nan)], 40) is None
    assert curve([(1, 2.0), (2, 3.0)], 10) is None
