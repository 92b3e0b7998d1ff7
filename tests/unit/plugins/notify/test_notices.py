"""Notices: which there are, how few, to whom, and with no secret in any message."""

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from typing import Any

import pytest

from hpsearch.domain.facts import Interruption
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, StudyRecord, StudyState
from hpsearch.errors import ClusterLost, UserError
from hpsearch.plugins.notify.notices import GATHER_S, Notices, notifying, recipient_of
from support.patience import PATIENCE_S
from support.studies.small import Simulation, budget_of, spec_with


@dataclass
class Told:
    """Notices with a clock that goes on by so many seconds a tick."""

    tick_s: float
    at: float = 0.0
    notices: list[Mapping[str, Any]] = field(default_factory=list)

    def clock(self) -> float:
        self.at += self.tick_s
        return self.at

    def events(self, event: str) -> list[Mapping[str, Any]]:
        return [notice for notice in self.notices if notice["event"] == event]


def drive(told: Told, **options: Any) -> Simulation:
    """Drive a study, watched as by its driver; its last record is told too."""
    simulation = Simulation(spec_with(budget=budget_of(20)), **options)
    notices = Notices("plain", told.notices.append, told.clock)
    study = simulation.study
    while not study.finished:
        simulation.tick()
        notices.watch(study, simulation.written[-1], simulation.executor.now)
    study.close(simulation.executor.now)
    notices.ended(simulation.history.study)
    return simulation


def test_each_new_best_is_told_where_there_is_time_between_them():
    told = Told(tick_s=2 * GATHER_S)
    simulation = drive(told)
    best = [notice["best"] for notice in told.events("best")]
    assert len(best) >= 2
    numbers = [each["trial"] for each in best]
    assert all(a != b for a, b in pairwise(numbers)), "each is another one"
    (end,) = told.events("end")
    trial = simulation.history.trials[end["best"]["trial"]]
    assert end["best"]["params"] == trial.params
    assert end["text"].startswith("hpsearch: study plain has ended: all 20 trials have ended")
    assert end["trials"]["complete"] == sum(
        each.state is State.COMPLETE for each in simulation.history.trials
    )
    assert end["gpu_hours"] > 0


def test_new_bests_are_gathered_to_one_a_minute():
    told = Told(tick_s=0.3)
    drive(told)
    assert told.at < GATHER_S
    assert len(told.events("best")) == 1
    assert len(told.events("end")) == 1


def test_lost_workers_are_told_and_counted():
    told = Told(tick_s=0.001)
    simulation = drive(told, losses=(5.0, 6.0, 7.0))
    lost = [
        attempt
        for trial in simulation.history.trials
        for attempt in trial.attempts
        if attempt.outcome is Outcome.LOST
    ]
    assert len(lost) == 3
    texts = [notice["text"] for notice in told.events("trouble")]
    assert len(texts) == 2, "the first at once, the others gathered"
    assert "lost the workers of 1 attempt:" in texts[0]
    assert "lost the workers of 2 attempts:" in texts[1]


@pytest.mark.parametrize(
    ("state", "by", "reason", "event", "words"),
    [
        (StudyState.FAILED, None, "3 trials failed", "trouble", "gave up: 3 trials failed"),
        (
            StudyState.INTERRUPTED,
            Interruption.DISK_FULL,
            "no room",
            "trouble",
            "was interrupted: no room",
        ),
        (StudyState.INTERRUPTED, None, None, "end", "was interrupted: it was asked to stop"),
        (StudyState.INTERRUPTED, Interruption.BY_HAND, "interrupted", "end", "was interrupted"),
        (
            StudyState.INTERRUPTED,
            Interruption.REQUEST,
            "stopped by ann",
            "end",
            "was interrupted: stopped by",
        ),
        (StudyState.FINISHED, None, "all done", "end", "has ended: all done"),
    ],
)
def test_how_a_study_ended_is_told(state, by, reason, event, words):
    told = Told(1.0)
    record = StudyRecord(1, "plain", "", state=state, reason=reason, interruption=by)
    Notices("plain", told.notices.append, told.clock).ended(record)
    (notice,) = told.notices
    assert notice["event"] == event
    assert words in notice["text"]
    assert notice["state"] == state.value


# ---------------------------------------------------------------------------------------- delivery


class Server(HTTPServer):
    """Answers as it is told to, and keeps what it is sent."""

    status = 200
    hangs = False
    garbage = b""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.bodies: list[dict[str, Any]] = []
        self.may_answer = threading.Event()

    @property
    def hook(self) -> str:
        return f"http://me:hunter2@127.0.0.1:{self.server_port}/T0/secret?key=abc"


class Answer(BaseHTTPRequestHandler):
    """One request."""

    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["Authorization"] == "Basic bWU6aHVudGVyMg=="  # me:hunter2
        self.server.bodies.append(json.loads(body))
        if self.server.hangs:
            self.server.may_answer.wait()
        if self.server.garbage:
            self.wfile.write(self.server.garbage)
            return
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.may_answer.set()
        server.shutdown()
        thread.join()


def test_a_url_gets_json_with_a_text(server):
    with notifying("plain", recipient_of(server.hook)) as notices:
        notices.ended(StudyRecord(1, "plain", "", state=StudyState.FINISHED, reason="done"))
    (body,) = server.bodies
    assert body["event"] == "end"
    assert body["text"] == "hpsearch: study plain has ended: done"


def test_an_error_of_the_driver_is_told_and_raised(server):
    recipient = recipient_of(server.hook)
    with pytest.raises(ClusterLost), notifying("plain", recipient):
        raise ClusterLost("the head is gone", "start it again")
    assert server.bodies[0]["event"] == "trouble"
    assert "the head is gone" in server.bodies[0]["text"]


@pytest.mark.parametrize(
    "trouble", ["answers 500", "hangs", "is not there", "answers garbage", "answers without end"]
)
def test_a_hook_that_does_not_work_is_told_of_once_and_without_its_secret(
    trouble, server, monkeypatch, caplog
):
    monkeypatch.setattr("hpsearch.plugins.notify.notices.TIMEOUT_S", 0.2)
    server.status = 500 if trouble == "answers 500" else 200
    server.hangs = trouble == "hangs"
    garbage = {
        "answers garbage": b"\x00\xff not HTTP\r\n\r\n",
        "answers without end": b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 100_000,
    }
    server.garbage = garbage.get(trouble, b"")
    url = server.hook
    if trouble == "is not there":
        url = "http://127.0.0.1:9/secret"
    record = StudyRecord(1, "plain", "", state=StudyState.FINISHED, reason="done")
    with caplog.at_level(logging.WARNING, "hpsearch"), notifying("s", recipient_of(url)) as notices:
        notices.ended(record)
        notices.ended(record)
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("notices do not arrive at 127.0.0.1: ")
    assert "secret" not in line
    assert "key" not in line


def test_nothing_waits_for_a_notice(server, monkeypatch):
    monkeypatch.setattr("hpsearch.plugins.notify.notices.TIMEOUT_S", 10 * PATIENCE_S)
    monkeypatch.setattr("hpsearch.plugins.notify.notices.END_S", PATIENCE_S)
    server.hangs = True
    record = StudyRecord(1, "plain", "", state=StudyState.FINISHED, reason="done")
    with notifying("s", recipient_of(server.hook)) as notices:
        notices.ended(record)
        server.may_answer.set()
    assert len(server.bodies) == 1


def test_a_command_gets_json_on_its_input_and_the_event_in_its_environment(tmp_path):
    script = tmp_path / "two words.sh"
    script.write_text('#!/bin/sh\necho "$HPSEARCH_EVENT $HPSEARCH_STUDY $1" > "$2"\ncat >> "$2"\n')
    script.chmod(0o755)
    out = tmp_path / "out"
    with notifying("plain", recipient_of(f"'{script}' '$HOME;x' {out}")) as notices:
        notices.ended(StudyRecord(1, "plain", "", state=StudyState.FINISHED, reason="done"))
    first, rest = out.read_text().split("\n", 1)
    assert first == "end plain $HOME;x", "no shell reads it"
    assert json.loads(rest)["event"] == "end"


@pytest.mark.parametrize(
    ("command", "limit_s", "words"),
    [("sleep 100000", 0.2, "was killed"), ("false", PATIENCE_S, "ended with code 1")],
)
def test_a_command_that_hangs_or_fails_is_told_of(command, limit_s, words, monkeypatch, caplog):
    monkeypatch.setattr("hpsearch.plugins.notify.notices.TIMEOUT_S", limit_s)
    with (
        caplog.at_level(logging.WARNING, "hpsearch"),
        notifying("s", recipient_of(command)) as notices,
    ):
        notices.ended(StudyRecord(1, "s", "", state=StudyState.FINISHED))
    assert words in caplog.text
    assert "sleep 100" not in caplog.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("'open", "close its quotes"),
        ("no-such-program --x", "there is no program no-such-program"),
        ("ftp://host/secret", "cannot be sent to ftp://"),
        ("https://", "not a valid one"),
        ("https://host:port/secret", "not a valid one"),
        ("https://ho st/secret", "not a valid one"),
        ("file:///etc/passwd", "cannot be sent to file://"),
    ],
)
def test_what_nobody_can_be_notified_by_is_refused(text, words):
    with pytest.raises(UserError, match=words) as caught:
        recipient_of(text)
    assert "secret" not in str(caught.value)
