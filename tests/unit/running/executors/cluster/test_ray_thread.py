"""Calls on the thread that uses Ray: waited for with a limit, by a thread that hears signals."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from hpsearch.errors import ClusterLost
from hpsearch.running.executors.cluster.ray_thread import RayThread, any_is_stuck


@pytest.fixture
def hangs() -> Iterator[threading.Event]:
    """An event that a call waits for: it is set once the test has ended."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def thread() -> Iterator[RayThread]:
    made = RayThread()
    yield made
    made.close()


def failing() -> None:
    raise TimeoutError("of the call itself")


def test_a_call_gives_what_its_function_gives_on_one_other_thread(thread):
    first = thread.call(threading.get_ident)
    assert first != threading.get_ident()
    with pytest.raises(TimeoutError, match="of the call itself"):
        thread.call(failing)
    assert thread.call(threading.get_ident, limit_s=60.0) == first
    assert not thread.is_stuck
    assert not any_is_stuck()


def test_a_call_that_does_not_come_back_is_given_up(thread, hangs):
    with pytest.raises(ClusterLost, match="Ray has not answered for 0 s"):
        thread.call(hangs.wait, limit_s=0.01)
    assert thread.is_stuck
    assert any_is_stuck()
    hangs.set()
    assert thread.call(lambda: "goes on") == "goes on"
    assert not any_is_stuck()


def test_who_watches_a_call_may_give_it_up(thread, hangs):
    def lost() -> None:
        raise ClusterLost("the head is silent")

    with pytest.raises(ClusterLost, match="the head is silent"):
        thread.call(hangs.wait, watch=lost)


def test_a_signal_is_heard_while_a_call_does_not_come_back(thread, hangs):
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.call(hangs.wait)
    finally:
        signal.signal(signal.SIGTERM, before)
