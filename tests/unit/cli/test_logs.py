"""`hpsearch logs`: what the command of a trial has printed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, StudyRecord, StudyState, Trial
from hpsearch.store.store import Store
from trials.checkpoints.places import log_of
from trials.tasks.command.output import EARLIER

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
        for number in (1, 2):
            history.add_attempt(
                Attempt(0, number, "w0", started=1.0, ended=2.0, outcome=Outcome.PAUSED)
            )
        with_lease = store.acquire(history.study.id, "test", 60.0)
        store.commit(history.study.id, history.drain(), with_lease)
    for attempt, text in ((1, "one\n"), (2, "\x1b[31mtwo\n 50%\r100%\nhalf a li")):
        path = Path(log_of(study, 0, attempt))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    Path(f"{log_of(study, 0, 1)}{EARLIER}").write_text("zero\n")
    return study


def test_the_logs_of_all_attempts_are_printed_without_steering_the_terminal(run, folder) -> None:
    said = run("logs", "run-it", "0")
    assert said.code == 0
    assert said.out == "zero\none\n\\x1b[31mtwo\n100%\nhalf a li\n"
    assert run("logs", "0", "--attempt", "1").out == "zero\none\n"


def test_following_a_trial_that_has_ended_ends(run, folder) -> None:
    assert run("logs", "run-it", "0", "--follow", "--attempt", "1").out == "zero\none\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run-it", "1"], "there is no log of trial 1 of run-it"),
        (["run-it", "0", "--attempt", "3"], "trial 0 of run-it has had 2 attempts"),
        (["run-it", "5"], "no trial 5"),
        (["run-it", "x"], "hpsearch logs NAME 7"),
    ],
)
def test_what_is_not_there_is_told(run, folder, words: list[str], said: str) -> None:
    told = run("logs", *words)
    assert told.code == 2
    assert said in told.err


def test_other_tasks_have_none_and_are_told_where_to_look(run, save) -> None:
    save("garden", [Trial(0, State.COMPLETE, {"lr": 0.1}, value=0.5)])
    told = run("logs", "garden", "0")
    assert told.code == 2
    assert "only tasks of the kind command have them" in told.err
    assert "/tmp/ray/session_latest/logs" in told.err
