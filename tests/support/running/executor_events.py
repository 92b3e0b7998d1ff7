"""Waiting for what an executor says, in tests: of a real one, in real time."""

import time
from collections.abc import Callable
from typing import Any

from hpsearch.domain import events as ev
from hpsearch.running.driver.loop import Executor
from support.patience import PATIENCE_S


def wait_for(executor: Executor, done: Callable[[list[ev.Event]], Any]) -> list[ev.Event]:
    """Poll until `done` says so of all events since; fail after `PATIENCE_S`."""
    events: list[ev.Event] = []
    give_up = time.monotonic() + PATIENCE_S
    while not done(events):
        assert time.monotonic() < give_up, f"only {events}"
        events += executor.poll(0.2)
    return events


def of(kind: type, count: int = 1) -> Callable[[list[ev.Event]], bool]:
    """Whether there are as many events of a kind."""
    return lambda events: sum(isinstance(event, kind) for event in events) >= count
