"""The ends of a driven study: each says why, and its exit code if trying again may help."""

import os
import signal
from types import SimpleNamespace
from typing import cast

import pytest

from hpsearch.domain.facts import Interruption
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import Interrupted
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.ends import interruption_of
from hpsearch.running.study_run.signals import stopped_by_signals
from trials.running import interruption


@pytest.mark.parametrize(
    ("by", "reason", "code", "says"),
    [
        (Interruption.BY_HAND, "interrupted", 130, "interrupted; everything is saved"),
        (Interruption.SIGNAL, "told to end by SIGHUP", 130, "interrupted: told to end by SIGHUP; "),
        (Interruption.REQUEST, "stopped by ada@lab", 5, "stopped by ada@lab; everything is saved"),
        (Interruption.DISK_FULL, "no checkpoint: no space", 3, "checkpoint: no space; what was"),
    ],
)
def test_an_interruption_says_why_on_its_one_line_and_how_the_study_goes_on(by, reason, code, says):
    record = StudyRecord(0, "toy", "", reason=reason, interruption=by)
    error = interruption_of(record, "hpsearch resume toy")
    assert error.exit_code == code
    (line,) = str(error).splitlines()
    assert says in line
    assert line.endswith("Continue with: hpsearch resume toy")


class _Driver:
    """Notes what it is asked for; all it drives is saved once it is `finished`."""

    def __init__(self, finished: bool) -> None:
        self.study = SimpleNamespace(finished=finished)
        self.asked: list[str | None] = []

    def request_stop(self, signal: str | None = None) -> None:
        self.asked.append(signal)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, as signals see it: the last of these."""
    moments = [0.0]
    heard = interruption.heard
    on_own_clock = lambda on_signal: heard(on_signal, lambda: moments[-1])  # noqa: E731
    monkeypatch.setattr(interruption, "heard", on_own_clock)
    return moments


def test_what_comes_twice_at_once_stops_a_driver_once_and_says_by_which_signal(clock):
    driver = _Driver(finished=False)
    with stopped_by_signals("hpsearch resume toy") as begins:
        begins(cast(Driver, driver))
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
    assert driver.asked == ["SIGTERM"]


@pytest.mark.parametrize("finished", [False, True])
def test_a_second_signal_ends_it_at_once_unless_all_is_saved_by_then(clock, finished):
    driver, reached = _Driver(finished), []

    def ask_twice() -> None:
        with stopped_by_signals("hpsearch resume toy") as begins:
            begins(cast(Driver, driver))
            for moment in (0.0, 2.0):
                clock.append(moment)
                signal.raise_signal(signal.SIGINT)
            reached.append("the last commit")

    if finished:
        ask_twice()
    else:
        with pytest.raises(Interrupted, match="at once"):
            ask_twice()
    assert bool(reached) == finished
