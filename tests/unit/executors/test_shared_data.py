"""Prepared data that trials share: made once, made again after a failure, and bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hpsearch.executors.shared_data import SharedData


class Made:
    """Counts what was prepared, by key."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()

    def __call__(self, params: Mapping[str, Any]) -> str:
        self.times[params["key"]] += 1
        return f"{params['key']} {self.times[params['key']]}"


def box(data: SharedData, trial: int, key: str) -> str:
    (reference,) = data.box_for((trial, 1), key, {"key": key})
    return str(reference)


def test_trials_share_what_is_prepared_in_the_same_way() -> None:
    data = SharedData(Made())
    assert [box(data, 0, "a"), box(data, 1, "a"), box(data, 2, "b")] == ["a 1", "a 1", "b 1"]
    data.ended((0, 1))
    assert box(data, 3, "a") == "a 1"


def test_what_a_failed_attempt_used_is_prepared_anew_for_the_next() -> None:
    data = SharedData(Made())
    assert [box(data, 0, "a"), box(data, 1, "a"), box(data, 2, "b")] == ["a 1", "a 1", "b 1"]
    data.ended((0, 1), suspect=True)
    assert box(data, 3, "a") == "a 2"
    data.ended(
        (1, 1), suspect=True
    )  # it failed on the first one too, which nobody is given any more
    assert [box(data, 4, "a"), box(data, 5, "b")] == ["a 2", "b 1"]


def test_the_end_of_an_attempt_that_used_nothing_changes_nothing() -> None:
    data = SharedData(Made())
    box(data, 0, "a")
    data.ended((7, 1), suspect=True)
    assert box(data, 1, "a") == "a 1"


def test_the_least_recently_used_goes_first() -> None:
    made = Made()
    data = SharedData(made, kept=2)
    for trial, key in enumerate("abacb"):
        box(data, trial, key)
        data.ended((trial, 1))
    assert made.times == {"a": 1, "b": 2, "c": 1}


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcdefgh")), max_size=60))
def test_what_runs_keeps_its_data_and_little_else_is_kept(steps: list[tuple[int, str]]) -> None:
    data, running = SharedData(Made(), kept=2), dict[int, tuple[str, str]]()
    for slot, key in steps:
        if slot in running:
            data.ended((slot, 1))
            del running[slot]
        else:
            running[slot] = (key, box(data, slot, key))
        for held, reference in running.values():
            assert data._boxes[held] == [reference]
        assert len(data._boxes) <= 2 + len(running)
