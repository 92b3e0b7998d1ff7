"""What continues another trial says so, wherever it is handed out."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from hpsearch.domain.facts import Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyState, Trial
from hpsearch.store.store import Store
from trials.single import command as alone

SPEC = """
study: flowers
task: {kind: tabular, train: rows.csv, target: kind, validation: 0.25}
space: {dropout: {type: float, low: 0.0, high: 0.5}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 9}}
"""
TOLD = "continues trial 0 from 3"


@pytest.fixture
def flowers(save, sqlite_url):
    """A study whose best trial continues another one."""
    source = Trial(0, State.PAUSED, {"dropout": 0.1}, value=0.5, resource=3.0)
    best = Trial(1, State.COMPLETE, {"dropout": 0.2}, value=0.9, resource=9.0, role=Role.PROPOSED)
    best.continues, best.continues_at, best.continues_with = 0, 3.0, "/trial-00000/step-3"
    save("flowers", [source, best], SPEC)
    with closing(Store.open(sqlite_url)) as store:
        study = store.find_study("flowers")
        study.state, study.base = StudyState.FINISHED, "/studies"
        report = ReportRecord(1, 9.0, 0.9, {"accuracy": 0.9})
        store.commit(study.id, Changes(study=study, reports=[report]))
    return "flowers"


def test_every_command_says_what_it_continues(run, flowers):
    for command in (("best",), ("trials",)):
        assert TOLD in run(*command, flowers).out
    assert "continues" in run("show", flowers, "1").out
    assert f"it {TOLD}" in run("status", flowers).out
    assert "its parameters alone do not give its value" in run("best", flowers).err
    (best,) = json.loads(run("best", flowers, "--format", "json").out)
    assert (best["continues"], best["continues_at"]) == (0, 3.0)
    found = run("trials", flowers, "--where", "continues = 0", "--format", "json")
    assert [each["number"] for each in json.loads(found.out)] == [1]


def test_the_report_says_so_and_offers_no_command_that_trains_it(run, flowers, tmp_path):
    page = tmp_path / "report.md"
    assert run("report", flowers, "-o", str(page)).code == 0
    said = page.read_text()
    assert f"It {TOLD} under other parameters" in said
    assert "hpsearch train" not in said


def test_it_is_not_trained_again_by_its_parameters_alone(
    run, flowers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (("train", flowers), ("train", flowers, "--trial", "1")):
        said = run(*words)
        assert said.code == 2
        assert f"trial 1 of flowers {TOLD}" in said.err
        assert "hpsearch enqueue flowers --like 1" in said.err
    said = run("train", flowers, "--as", "1")
    assert said.code == 2
    assert TOLD in said.err
    settings = yaml.safe_load(run("best", flowers, "--format", "yaml").out)
    assert settings["continues"] == {"trial": 0, "at": 3.0}
    file = tmp_path / "best.yaml"
    file.write_text(yaml.safe_dump(settings))
    assert alone.main([str(file), "--out", str(tmp_path / "out")]) == 2
    assert "continues another trial" in capsys.readouterr().err


def test_a_database_whose_trial_continues_from_nowhere_is_found_out(run, flowers, sqlite_url):
    assert run("db", "check").code == 0
    with closing(Store.open(sqlite_url)) as store:
        history = store.load(flowers)
        trial = history.trials[1]
        for change in ({"continues": 7}, {"continues": 1}, {"continues_at": None}):
            kept = {name: getattr(trial, name) for name in change}
            for name, value in change.items():
                setattr(trial, name, value)
            store.commit(history.study.id, Changes(trials=[trial]))
            said = run("db", "check")
            assert "not from a place that is on record" in said.out + said.err, change
            for name, value in kept.items():
                setattr(trial, name, value)
