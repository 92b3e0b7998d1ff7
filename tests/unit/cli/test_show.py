"""`hpsearch show`, `show --log` and `status --watch`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import make_url

from hpsearch.cli.results import listing as status
from hpsearch.cli.results import logs
from hpsearch.domain.history import Changes, History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import moment
from hpsearch.domain.records import Attempt, Outcome, StudyRecord, StudyState, Trial
from hpsearch.store.leases import Lease
from hpsearch.store.owners import this_process
from hpsearch.store.store import Store
from trials.checkpoints.disk.log_file import EARLIER
from trials.checkpoints.folders import log_of
from trials.contract import Finding, Severity


def test_what_differs_and_what_both_came_to(run, flowers):
    said = run("show", flowers, "0", "2")
    assert said.code == 0
    assert "parameters that differ" in said.out
    rows = {line.split()[0]: line.split()[1:] for line in said.out.splitlines() if line.strip()}
    assert rows["lr"] == ["0.1", "0.01"]
    assert rows["value"] == ["0.7", "0.9"]
    assert rows["3"] == ["0.7", "0.9"]  # at the same resource


def test_trials_with_the_same_parameters(run, flowers):
    assert "the same parameters" in run("show", flowers, "4", "5").out


def test_three_trials_of_the_only_study_as_json(run, flowers):
    found = json.loads(run("show", "0", "1", "2", "--format", "json").out)
    assert found["differing"]["opt"] == ["adamw", "lion", "lion"]
    assert found["values"] == {"0": [0.7], "1": [None], "2": [0.9]}


def test_what_cannot_be_compared_is_refused(run, flowers):
    for words in (("0", "0"), (flowers, "0", "0"), (flowers, "0", "x")):
        said = run("show", *words)
        assert said.code == 2, words
        assert "hpsearch show NAME 7 12" in said.err
    said = run("show", flowers, "0", "1", "--watch")
    assert said.code == 2
    assert "--watch follows a log" in said.err
    said = run("show", flowers, "0", "99")
    assert said.code == 2
    assert "has no trial 99" in said.err


SPIKES = Finding("gradient_spikes", "the gradient norm was 55 around step 41", Severity.WARNING)


def test_findings_are_shown_with_their_evidence(run, save):
    ill = Trial(0, State.COMPLETE, {"lr": 0.1}, value=0.5, findings=[SPIKES])
    save("garden", [ill, Trial(1, State.COMPLETE, {"lr": 0.1}, value=0.5)])
    said = run("show", "garden", "0")
    assert said.code == 0
    for word in ("health", *SPIKES.as_plain().values()):
        assert word in said.out
    assert json.loads(run("show", "garden", "0", "--format", "json").out)["findings"] == [
        SPIKES.as_plain()
    ]


def test_a_healthy_trial_shows_no_findings(run, save):
    save("garden", [Trial(0, State.COMPLETE, {"lr": 0.1}, value=0.5)])
    assert "health" not in run("show", "garden", "0").out
    assert json.loads(run("show", "garden", "0", "--format", "json").out)["findings"] == []


def test_a_study_that_nobody_drives_is_shown_once(run, flowers):
    said = run("status", flowers, "--watch", "--format", "json")
    assert said.code == 0
    assert len(said.out.splitlines()) == 1
    assert json.loads(said.out)["study"] == flowers
    table = run("status", flowers, "--watch")
    assert table.code == 0
    assert table.out


def test_a_format_that_has_no_lines_is_refused(run, flowers):
    said = run("status", flowers, "--watch", "--format", "yaml")
    assert said.code == 2
    assert "--watch does not print yaml" in said.err


def test_only_what_has_changed_is_printed_again(run, save, sqlite_url, monkeypatch):
    save("garden", [Trial(n, State.PAUSED, {"lr": 0.1}, value=0.5) for n in range(3)])
    with closing(Store.open(sqlite_url)) as store:
        study = store.load("garden").study
        lease = store.acquire(study.id, this_process(), 60.0)
        looks = iter(range(100))
        monkeypatch.setattr(status.time, "sleep", lambda _: _change(store, lease, next(looks)))
        said = run("status", "garden", "--watch", "--format", "json")
    printed = [json.loads(line) for line in said.out.splitlines()]
    found = [(each["trials"], each["driver"] is None) for each in printed]
    assert found == [
        ({"paused": 3}, False),
        ({"complete": 1, "paused": 2}, False),
        ({"complete": 1, "paused": 2}, True),
    ]


def _change(store: Store, lease: Lease, look: int) -> None:
    """One trial changes after the first look, and the driver leaves after the third."""
    if look == 0:
        changed = Trial(1, State.COMPLETE, {"lr": 0.1}, value=0.75)
        store.commit(lease.study_id, Changes(trials=[changed]), lease)
    elif look == 2:
        store.release(lease)


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


def test_the_logs_of_all_attempts_are_printed_without_steering_the_terminal(run, folder):
    said = run("show", "run-it", "0", "--log")
    assert said.code == 0
    assert said.out == (FIRST + SECOND).format(at=moment(1.0))
    assert run("show", "0", "--log", "--attempt", "1").out == FIRST.format(at=moment(1.0))


def test_following_a_trial_that_has_ended_ends(run, folder):
    followed = run("show", "run-it", "0", "--log", "--watch", "--attempt", "1").out
    assert followed == FIRST.format(at=moment(1.0))


def test_following_goes_through_the_attempts_and_the_parts_of_a_log_until_the_trial_ends(
    run, folder, sqlite_url, monkeypatch
):
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
def test_what_is_not_there_is_told(run, folder, words, said):
    told = run("show", "--log", *words)
    assert told.code == 2
    assert said in told.err


@pytest.mark.parametrize(
    "words", [["--attempt", "1"], ["--log", "--format", "json"]], ids=["an attempt", "a format"]
)
def test_what_does_not_go_with_a_log_is_refused(run, folder, words):
    told = run("show", "run-it", "0", *words)
    assert told.code == 2
    assert "add --log, or remove --format" in told.err


def test_show_names_the_log(run, folder):
    assert str(log_of(folder, 0, 2)) in run("show", "run-it", "0").out
    shown = json.loads(run("show", "run-it", "0", "--format", "json").out)
    assert shown["logs"] == [str(log_of(folder, 0, number)) for number in (1, 2)]
    assert json.loads(run("show", "run-it", "1", "--format", "json").out)["logs"] == []


def test_a_study_that_was_not_run_from_a_file_has_none(run, save):
    save("garden", [Trial(0, State.COMPLETE, {"lr": 0.1}, value=0.5)])
    told = run("show", "garden", "0", "--log")
    assert told.code == 2
    assert "its trials have no logs" in told.err
