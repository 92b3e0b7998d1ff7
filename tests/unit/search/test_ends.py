"""The ends of trials, foretold from what they have shown at a rung."""

import numpy as np
import pytest

from hpsearch.search.ends import Ends


def drawn(
    rng: np.random.Generator, count: int, correlation: float
) -> tuple[list[float], list[float]]:
    """The values that trials show, and their ends."""
    shown = rng.normal(size=count)
    ends = correlation * shown + np.sqrt(1 - correlation**2) * rng.normal(size=count)
    return list(shown), list(ends)


def in_order(ends: list[float], among: list[int]) -> list[int]:
    return sorted(among, key=lambda place: ends[place])


def test_before_any_has_ended_each_may_be_the_best_and_ties_share_their_place():
    ends = Ends(1 / 3, [[3.0, 1.0, 2.0]], [])
    assert [ends.beats(place) for place in range(3)] == pytest.approx([1.0] * 3, abs=1e-3)
    found = Ends(1 / 3, [[1.0, 1.0, 2.0, 2.0]], [3])
    assert found.beats(0) == found.beats(1) > found.beats(2)


def test_who_shows_more_is_likelier_to_win_and_the_surer_the_later_the_rung():
    shown = [float(place) for place in range(9)]
    early, late = (Ends(share, [shown], [2]) for share in (0.11, 0.67))
    chances = [late.beats(place) for place in range(9)]
    assert chances == sorted(chances, reverse=True)
    assert late.beats(0) > early.beats(0) > 0.5 > early.beats(8) > late.beats(8) > 0.0


def test_a_rung_that_misleads_is_found_out_though_only_the_best_there_have_ended():
    rng = np.random.default_rng(1)
    shown, ends = drawn(rng, 30, 0.0)
    chosen = sorted(range(30), key=lambda place: shown[place])[:12]
    ended = in_order(ends, chosen)
    last = max(range(30), key=lambda place: shown[place])
    agreeing = Ends(1 / 3, [shown], sorted(chosen, key=lambda place: shown[place]))
    assert Ends(1 / 3, [shown], ended).beats(last) > 3 * agreeing.beats(last)


def test_the_signal_that_has_told_of_ends_counts():
    rng = np.random.default_rng(2)
    loss, ends = drawn(rng, 20, 0.95)
    objective = list(rng.normal(size=20))
    ended = in_order(ends, list(range(0, 20, 2)))
    found = Ends(1 / 3, [objective, loss], ended)
    alone = Ends(1 / 3, [loss], ended)
    for place in range(1, 20, 2):
        assert found.beats(place) == pytest.approx(alone.beats(place), abs=0.1)


@pytest.mark.parametrize("correlation", [0.2, 0.6, 0.95])
def test_chances_come_true_as_often_as_they_say_also_of_those_that_were_left(correlation):
    rng = np.random.default_rng(3)
    said, came = [], []
    for _ in range(300):
        shown, ends = drawn(rng, 12, correlation)
        chosen = sorted(range(12), key=lambda place: shown[place])[:4]
        found = Ends(1 / 3, [shown], in_order(ends, chosen))
        best = min(ends[place] for place in chosen)
        for place in set(range(12)) - set(chosen):
            said.append(found.beats(place))
            came.append(ends[place] < best)
    hopeless = np.array(said) < 0.07
    if hopeless.any():
        assert np.mean(np.array(came)[hopeless]) < 0.15
    assert np.mean(said) == pytest.approx(np.mean(came), abs=0.15)
