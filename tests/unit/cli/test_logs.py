"""`hpsearch show --log`: what the attempts of a trial have printed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import make_url

from hpsearch.cli.results import logs
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import moment
from hpsearch.domain.records import Attempt, Outcome, StudyRecord, StudyState, Trial
from hpsearch.store.store import Store
from trials.checkpoints.disk.log_file import EARLIER
from trials.checkpoints.folders import log_of

SPEC = """
study: run-it
task: {kind: command, run: "train {x}"}
space: {x: {type: float, low: 0, high: 1}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 3}}
"""


@pytest.fixture
def folder(sqlite_url: str, tmp_path: Path) -> Path:
    """The folder of a study with a trial that had two attempts, and one that had none."""
    study = tmp_path / "run-it-1"
    with closing(Store.open(sqlite_url)) as store:
        record = StudyRecord(
            id=0,
            name="run-it",
            spec=SPEC,
            directions=("minimize",),
            created=1.0,
            base=str(tmp_path),
            checkpoints=str(study),
            uid="1",
            state=StudyState.FINISHED,
        )
        history = History(store.create_study(record))
        for number in range(2):
            history.add_trial(Trial(number, State.PRUNED, {"x": 0.5}, seed=1, created=1.0))
        ends = ((1, Outcome.PAUSED, None), (2, Outcome.LOST, "its worker died"))
        for number, outcome, why in ends:
            history.add_attempt(
                Attempt(0, number, "w0", started=1.0, ended=2.0, outcome=outcome, note=why)
            )
        with_lease = store.acquire(history.study.id, "test", 60.0)
        store.commit(history.study.id, history.drain(), with_lease)
    for attempt, text in ((1, "one\n"), (2, "\x1b[31mtwo\n 50%\r100%\nhalf a li")):
        path = Path(log_of(study, 0, attempt))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    Path(f"{log_of(study, 0, 1)}{EARLIER}").write_text("zero\n")
    return study


FIRST = "zero\none\n[hpsearch] attempt 1: paused after 1.0 s, begun {at}\n"
SECOND = (
    "two\n100%\nhalf a li\n[hpsearch] attempt 2: lost after 1.0 s, begun {at}: its worker died\n"
)


def test_the_logs_of_all_attempts_are_printed_without_steering_the_terminal(run, folder) -> None:
    said = run("show", "run-it", "0", "--log")
    assert said.code == 0
    assert said.out == (FIRST + SECOND).format(at=moment(1.0))
    assert run("show", "0", "--log", "--attempt", "1").out == FIRST.format(at=moment(1.0))


def test_following_a_trial_that_has_ended_ends(run, folder) -> None:
    followed = run("show", "run-it", "0", "--log", "--watch", "--attempt", "1").out
    assert followed == FIRST.format(at=moment(1.0))


def test_following_goes_through_the_attempts_and_the_parts_of_a_log_until_the_trial_ends(
    run, folder, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def now(sql: str) -> None:
        path = make_url(sqlite_url).database
        with closing(sqlite3.connect(str(path))) as connection, connection:
            connection.execute(sql)

    second = Path(log_of(folder, 0, 2))
    second.write_text("a begins\na goes on\n")
    now("UPDATE studies SET state = 'running'")
    now("UPDATE trials SET state = 'running' WHERE number = 0")
    now("UPDATE attempts SET outcome = NULL, ended = NULL WHERE number = 2")

    def put_aside() -> None:
        Path(f"{second}{EARLIER}").write_text("a begins\na goes on\nand ends\n")
        second.write_text("b begins\nhalf")

    def add() -> None:
        second.write_text("b begins\nhalf a line\n")

    def end() -> None:
        now("UPDATE attempts SET outcome = 'complete', ended = 3.0 WHERE number = 2")
        now("UPDATE trials SET state = 'complete' WHERE number = 0")

    happens = iter([put_aside, add, end])
    clock = SimpleNamespace(sleep=lambda seconds: next(happens)())
    monkeypatch.setattr(logs, "time", clock)
    lines = run("show", "run-it", "0", "--log", "--watch").out.splitlines()
    assert lines[3:-1] == ["a begins", "a goes on", "and ends", "b begins", "half a line"]
    assert lines[-1].startswith("[hpsearch] attempt 2: complete after 2.0 s")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run-it", "1"], "there is no log of trial 1 of run-it"),
        (["run-it", "0", "--attempt", "3"], "trial 0 of run-it has had 2 attempts"),
        (["run-it", "5"], "no trial 5"),
        (["run-it", "x"], "hpsearch show NAME 7"),
    ],
)
def test_what_is_not_there_is_told(run, folder, words: list[str], said: str) -> None:
    told = run("show", "--log", *words)
    assert told.code == 2
    assert said in told.err


@pytest.mark.parametrize(
    "words", [["--attempt", "1"], ["--log", "--format", "json"]], ids=["an attempt", "a format"]
)
def test_what_does_not_go_with_a_log_is_refused(run, folder, words: list[str]) -> None:
    told = run("show", "run-it", "0", *words)
    assert told.code == 2
    assert "add --log, or remove --format" in told.err


def test_show_names_the_log(run, folder) -> None:
    assert str(log_of(folder, 0, 2)) in run("show", "run-it", "0").out
    shown = json.loads(run("show", "run-it", "0", "--format", "json").out)
    assert shown["logs"] == [str(log_of(folder, 0, number)) for number in (1, 2)]
    assert json.loads(run("show", "run-it", "1", "--format", "json").out)["logs"] == []


def test_a_study_that_was_not_run_from_a_file_has_none(run, save) -> None:
    save("garden", [Trial(0, State.COMPLETE, {"lr": 0.1}, value=0.5)])
    told = run("show", "garden", "0", "--log")
    assert told.code == 2
    assert "its trials have no logs" in told.err
