"""The time in which an executor on Ray did not listen to its slots."""

import time
from types import SimpleNamespace

from hpsearch.running.executors.ray import AWAY_S, RayExecutor


def test_time_without_slots_does_not_count_as_an_absence_later():
    executor = object.__new__(RayExecutor)
    executor._head = SimpleNamespace(check=lambda: None)
    executor._slots = {}
    executor._followed = time.monotonic() + 3600
    executor._listened = time.monotonic() - 10 * AWAY_S - 3600
    assert executor.poll(0.0) == []
    absences = []
    executor._slots = {"w1": SimpleNamespace(skip_silence=absences.append)}
    executor._note_absence(AWAY_S)
    assert absences == []
