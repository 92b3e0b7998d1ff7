"""A study whose plugins were uninstalled: readings have it, and `resume` names what is missing."""

from contextlib import closing

import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.domain.plugins.offers import TrackerPlugin
from hpsearch.domain.records import StudyState
from hpsearch.errors import UserError
from hpsearch.running.creation.study import spec_of as spec_on_record
from hpsearch.running.tracking import senders
from hpsearch.store.store import Store
from support.studies.reported import PARAMS, SPACE, a_trial, save, spec_of

NEAR = {"sampler": {"kind": "near", "pull": 0.7}, "pruner": "none"}
LINES = ["mlflow", {"lines": {"folder": "out"}}]


@pytest.fixture
def gone(sqlite_url: str):
    """Writes a study, interrupted, with these parts of its file."""

    def write(**parts: object) -> None:
        trials = [a_trial(n, State.COMPLETE, PARAMS[n], 0.5 + n / 10) for n in range(3)]
        text = spec_of("gone", SPACE, **parts)
        save(sqlite_url, "gone", trials, text, state=StudyState.INTERRUPTED, reason=None)

    return write


@pytest.mark.parametrize("parts", [{"search": NEAR}, {"track": LINES}, {"track": "lines"}])
def test_a_study_whose_plugin_is_gone_is_listed_shown_and_exported(gone, parts, run, tmp_path):
    gone(**parts)
    table = tmp_path / "trials.csv"
    for words in ("ls", "status", "best", "trials", "show 1", f"export --to {table}"):
        said = run(*words.split())
        assert said.code == 0, said.err
        assert "left out" not in said.err
    assert len(table.read_text().splitlines()) == 4


def test_resume_says_that_no_plugin_offers_the_sampler(gone, run):
    gone(search=NEAR)
    said = run("resume", "gone")
    assert said.code == 2
    assert "near is offered by no plugin that is installed" in said.err


def test_resume_says_which_tracker_is_missing_and_goes_on_without(gone, run, monkeypatch):
    gone(track=LINES, task={"kind": "command", "run": "true {budget} {params}"})
    stopped = UserError("it would begin here")
    monkeypatch.setattr("hpsearch.cli.studies.run._drive", raising(stopped))
    monkeypatch.setattr("hpsearch.cli.studies.run.missing", lambda trackers: [])
    said = run("resume", "gone").err
    assert "no plugin that is installed offers lines; the study goes on without" in said
    assert "it would begin here" in said


def test_the_trackers_that_are_there_are_read(gone, sqlite_url):
    gone(track=LINES)
    with closing(Store.open(sqlite_url)) as store:
        spec = spec_on_record(store.find_study("gone"))
    assert [tracker.kind for tracker in spec.track] == ["mlflow"]


def test_a_hint_names_what_the_package_of_a_foreign_tracker_needs(monkeypatch):
    lines = TrackerPlugin("lines", "lab:Options", "lab:Lines", ("lab-client", "lab"))
    monkeypatch.setattr(senders, "TRACKERS", {**senders.TRACKERS, "lines": lines})
    assert senders.install(["lines"]) == "pip install lab-client"
    both = senders.install(["mlflow", "wandb", "lines"])
    assert both.startswith('pip install ".[mlflow,wandb]" in the folder')
    assert both.endswith(", and pip install lab-client")


def raising(error: Exception):
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it
