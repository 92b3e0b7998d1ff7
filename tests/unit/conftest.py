"""What tests of commands share: a database with a study in it, and a way to run a command as a
person would."""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pytest

from hpsearch.cli.main import main
from hpsearch.domain.facts import DecisionKind, ErrorKind, Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import (
    Attempt,
    Decision,
    Outcome,
    ReportRecord,
    StudyRecord,
    StudyState,
    Trial,
)
from hpsearch.store.store import Store

SPEC = """
study: flowers
task: {kind: text_classification, train: data/train.csv, test: test.csv, \
text: text, label: label, model: tiny}
settings: {schedule: cosine, batch_size: 8}
space: {lr: {type: float, low: 1.0e-5, high: 1.0, log: true}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, gpu_hours: 1, per_trial: {epochs: 3}}
"""


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capfd, sqlite_url, monkeypatch):
    """Runs a command on the test's own database; the processes that it starts print with it."""
    monkeypatch.setenv("HPSEARCH_STORAGE", sqlite_url)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = capfd.readouterr()
        return Said(
            ended.value.code if isinstance(ended.value.code, int) else 0, said.out, said.err
        )

    return call


Save = Callable[..., None]


@pytest.fixture
def save(sqlite_url: str) -> Save:
    """Writes a study of some trials to the test's own database: ``save(name, trials)``."""
    return partial(_save, sqlite_url)


@pytest.fixture
def flowers(save: Save) -> str:
    """The name of a study with a best trial (2), its two repeats (4, 5), a failed one and one that
    was pruned."""
    trials = [
        _trial(0, State.COMPLETE, {"lr": 0.1, "opt": "adamw"}, 0.7),
        _trial(
            1,
            State.FAILED,
            {"lr": 0.9, "opt": "lion"},
            None,
            error_kind=ErrorKind.DIVERGED,
            error_text="loss is nan",
        ),
        _trial(2, State.COMPLETE, {"lr": 0.01, "opt": "lion"}, 0.9, checkpoint="/checkpoints/2"),
        _trial(3, State.PRUNED, {"lr": 0.5, "opt": "adamw"}, 0.65),
        _trial(4, State.COMPLETE, {"lr": 0.01, "opt": "lion"}, 0.86, role=Role.CONFIRM, repeats=2),
        _trial(5, State.COMPLETE, {"lr": 0.01, "opt": "lion"}, 0.88, role=Role.CONFIRM, repeats=2),
    ]
    save("flowers", trials)
    return "flowers"


def _save(url: str, name: str, trials: list[Trial], spec: str = SPEC, **more: object) -> None:
    with closing(Store.open(url)) as store:
        record = StudyRecord(0, name, spec, ("maximize",), StudyState.FINISHED, "budget used")
        record.created = 1.0
        record.base = f"{os.sep}studies"
        for key, content in more.items():
            setattr(record, key, content)
        store.create_study(record)
        attempts = [attempt for trial in trials for attempt in trial.attempts]
        reports = [report for trial in trials for report in trial.reports.values()]
        decisions = [
            Decision(trial.number, DecisionKind.FINISH, "budget used", 3.0) for trial in trials
        ]
        store.commit(
            record.id,
            Changes(trials=trials, attempts=attempts, reports=reports, decisions=decisions),
        )


def _trial(
    number: int, state: State, params: dict[str, object], value: float | None, **more: object
) -> Trial:
    attempt = Attempt(
        number, 1, "worker-0", 10.0, ended=40.0, outcome=Outcome(state.value), gpu_seconds=30.0
    )
    metrics = {"accuracy": value if value is not None else float("nan"), "loss": 0.5}
    report = ReportRecord(number, 3.0, value, metrics, 1, 12, 30.0, 40.0)
    trial = Trial(
        number, state, params, seed=100 + number, value=value, resource=3.0, gpu_seconds=30.0
    )
    trial.attempts, trial.reports = [attempt], {3.0: report}
    for name, content in more.items():
        setattr(trial, name, content)
    return trial
