"""What a study had used at a moment, and where it went: sums that can be done by hand."""

import math

import pandas as pd
import pytest

from hpsearch.views.report.data import closed, gpu_clock, idle, spending


def attempts_of(*rows: tuple[int, str, float, float, str | None, float, float]) -> pd.DataFrame:
    names = ["trial", "worker", "started", "ended", "outcome", "gpu_seconds", "start_up_seconds"]
    return pd.DataFrame(rows, columns=names)


TWO_SLOTS = attempts_of(
    (0, "w0", 100.0, 120.0, "complete", 20.0, 5.0),
    (1, "w1", 100.0, 110.0, "paused", 10.0, 2.0),
    (2, "w1", 112.0, 118.0, "lost", 6.0, 0.0),
)
STATES = {"state": ["complete", "paused", "complete"], "role": ["search", "search", "confirm"]}


def test_gpu_time_is_spread_over_an_attempt_and_slots_do_not_wait_between_drivers():
    assert gpu_clock([90, 100, 105, 111, 120, 999], TWO_SLOTS).tolist() == [0, 0, 10, 21, 36, 36]
    later = TWO_SLOTS.assign(started=TWO_SLOTS["started"] + 1000, ended=TWO_SLOTS["ended"] + 1000)
    both = pd.concat([TWO_SLOTS, later], ignore_index=True)
    assert idle(both, [99.0, 1099.0]) == 2 * idle(TWO_SLOTS, [99.0]) == 8.0


def test_a_live_attempt_has_lasted_until_now_at_the_rate_of_the_others():
    live = attempts_of(
        (0, "w0", 0.0, 10.0, "complete", 5.0, math.nan),
        (1, "w0", 10.0, math.nan, None, 0.0, math.nan),
    )
    done = closed(live, 30.0)
    assert done["ended"].tolist() == [10.0, 30.0]
    assert done["gpu_seconds"].tolist() == [5.0, 10.0]


def test_all_gpu_time_has_a_purpose_and_idle_slots_come_on_top():
    spent = spending(TWO_SLOTS.assign(**STATES), [])
    assert spent == {
        "finished": (15.0, 1),
        "paused or pruned": (8.0, 1),
        "failed or lost": (6.0, 1),  # whatever became of its trial
        "start-up": (7.0, 2),
        "idle slots": (pytest.approx(4.0), 0),
    }


def test_repeats_are_the_confirmations_and_runs_of_changed_code_are_told_from_them():
    repeat = TWO_SLOTS.assign(outcome="complete")
    assert spending(repeat.assign(**STATES), [])["confirmation"] == (6.0, 1)
    roles = ["search", "search", "revision"]
    assert spending(repeat.assign(**{**STATES, "role": roles}), [])["changed code"] == (6.0, 1)
