"""The commands that read a database: results on stdout alone, in the format asked for."""

import csv
import io
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pandas as pd
import pytest
import yaml

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyState, Trial
from hpsearch.store.store import Store

Run = Callable[..., Any]
Save = Callable[..., None]


BEST_KEYS = [
    *("study", "number", "state", "value", "seen_at"),
    *("expected", "expected_deviation", "expected_low", "expected_high"),
    *("values", "violation", "params", "resource", "gpu_seconds", "version"),
    *("confirmed", "tied", "unknown", "seed", "cost", "checkpoint", "rung_verdict"),
]


def test_best_as_json_is_a_list_of_exactly_the_documented_keys(run, flowers):
    said = run("best", flowers, "--top", "2", "--format", "json")
    first, second = json.loads(said.out)
    assert list(first) == BEST_KEYS
    assert (first["study"], first["number"], first["state"], first["value"]) == (
        "flowers",
        2,
        "complete",
        0.9,
    )
    assert first["params"] == {"lr": 0.01, "opt": "lion"}
    assert (first["seed"], first["gpu_seconds"], first["checkpoint"], first["cost"]) == (
        102,
        30.0,
        "/checkpoints/2",
        None,
    )
    assert list(first["confirmed"]) == ["mean", "low", "high", "runs"]
    assert first["confirmed"]["mean"] == pytest.approx(0.87)
    assert first["confirmed"]["runs"] == 2
    assert second["confirmed"] is None
    assert said.code == 0
    assert said.err == ""


def test_best_as_yaml_is_what_trains_the_configuration_again_a_document_each(run, flowers):
    assert yaml.safe_load(run("best", flowers, "--format", "yaml").out) == {
        "task": {
            "kind": "text_classification",
            "train": "/studies/data/train.csv",
            "test": "/studies/test.csv",
            "text": "text",
            "label": "label",
            "model": "tiny",
        },
        "settings": {"schedule": "cosine", "batch_size": 8, "lr": 0.01, "opt": "lion"},
        "objective": {"metric": "accuracy", "direction": "maximize"},
        "budget": {"per_trial": {"epochs": 3}},
        "seed": 102,
    }
    documents = list(yaml.safe_load_all(run("best", flowers, "--top", "2", "--format", "yaml").out))
    assert [d["settings"]["lr"] for d in documents] == [0.01, 0.1]


def test_best_as_yaml_is_measured_as_the_trials_of_its_study_were(run, save):
    spec = """
study: translations
task: {kind: sequence_to_sequence, train: pairs.csv, validation: 0.2, model: tiny}
space: {max_target_length: {type: int, low: 8, high: 64}}
objective: {metric: loss, direction: minimize}
budget: {trials: 5, per_trial: {epochs: 3}}
"""
    save(
        "translations", [Trial(0, State.COMPLETE, {"max_target_length": 16}, value=1.0)], spec=spec
    )
    written = yaml.safe_load(run("best", "translations", "--format", "yaml").out)
    assert written["settings"] == {"scored_target_length": 64, "max_target_length": 16}


def test_best_of_a_study_without_a_study_file_has_no_settings_to_print(run, save, flowers):
    save("asked", [Trial(0, State.COMPLETE, {"x": 1}, value=1.0)], spec="")
    said = run("best", "asked", "--format", "yaml")
    assert said.code == 2
    assert "--format json" in said.err


def test_before_any_trial_has_a_value_there_is_no_best(run, save):
    save("young", [Trial(0, State.RUNNING, {"lr": 0.1})])
    assert json.loads(run("best", "young", "--format", "json").out) == []
    assert run("best", "young").err == "no trial of young has a value yet\n"
    assert run("best", "young", "--format", "yaml").code == 2


def test_best_as_a_table_names_the_parameters_and_the_interval(run, flowers):
    opening, head, first, *_ = run("best", flowers, "--top", "2").out.splitlines()
    assert opening == "accuracy 0.87, from 4 trials; mean of 2 trainings"
    assert head.split()[-2:] == ["lr", "opt"]
    assert "0.87 ± " in first
    assert "(2 runs)" in first


@pytest.fixture
def lucky(save: Save) -> str:
    """The name of a study whose first trial was lucky once, and whose second is expected to be
    best; both are paused."""
    trials = [
        _expected(0, State.PAUSED, {1.0: 0.75, 2.0: 0.95, 3.0: 0.71}, 0.72, 0.02),
        _expected(1, State.PAUSED, {1.0: 0.81, 2.0: 0.80}, 0.85, 0.02),
        _expected(2, State.COMPLETE, {1.0: 0.60, 2.0: 0.65, 3.0: 0.70}, 0.70, 0.0),
    ]
    save("lucky", trials)
    return "lucky"


def _expected(
    number: int, state: State, curve: dict[float, float], expected: float, deviation: float
) -> Trial:
    """A trial with a report at each level, and what is expected of it in full."""
    trial = Trial(number, state, {"lr": 0.1 * (number + 1)}, value=max(curve.values()))
    trial.resource = max(curve)
    trial.expected, trial.expected_deviation = expected, deviation
    for resource, value in curve.items():
        trial.reports[resource] = ReportRecord(number, resource, value, {"accuracy": value})
    return trial


def test_best_is_what_is_expected_to_be_and_tells_what_was_seen_to_people_and_programs(run, lucky):
    opening, head, *rows = run("best", lucky, "--top", "3").out.splitlines()
    assert opening == "accuracy 0.85 if trained to the end, from 3 trials"
    assert head.split() == [
        *("trial", "state", "value", "seen", "at", "if", "trained", "again", "(90%)"),
        *("resource", "compute", "time", "lr"),
    ]
    assert [row.split() for row in rows[:3]] == [
        ["1", "paused", "0.81", "1", "0.85", "±", "0.033", "2", "0", "s", "0.2"],
        ["0", "paused", "0.95", "2", "0.72", "±", "0.033", "3", "0", "s", "0.1"],
        ["2", "complete", "0.7", "3", "0.7", "3", "0", "s", "0.3"],
    ]
    assert all(len(line) <= 100 for line in (head, *rows))
    (first,) = json.loads(run("best", lucky, "--format", "json").out)
    told = [first[key] for key in ("number", "value", "seen_at", "expected", "expected_deviation")]
    assert told == [1, 0.81, 1.0, 0.85, pytest.approx(0.02)]
    (row,) = csv.DictReader(io.StringIO(run("best", lucky, "--format", "csv").out))
    assert (row["value"], row["seen_at"]) == ("0.81", "1.0")
    assert (row["expected"], float(row["expected_deviation"])) == ("0.85", pytest.approx(0.02))
    (written,) = yaml.safe_load_all(run("best", lucky, "--format", "yaml").out)
    assert written["settings"]["lr"] == 0.2


def test_where_nothing_is_expected_nothing_is_told_of_it(run, flowers):
    for command in (["best"], ["trials"], ["status"], ["ls"], ["show", "2"]):
        assert "expected" not in run(*command).out


def test_what_is_expected_is_told_wherever_the_best_is(run, lucky):
    assert "0.85 ± 0.033 if trained again (paused)" in run("ls").out
    status = run("status", lucky).out
    told = "0.85 ± 0.033 if trained again (paused), trial 1: lr=0.2 (its best value so far: 0.81)"
    assert told in status
    for command in (["ls"], ["status", lucky]):
        found = json.loads(run(*command, "--format", "json").out)
        best = found[0]["best"] if isinstance(found, list) else found["best"]
        assert (best["number"], best["value"], best["expected"]) == (1, 0.81, 0.85)
        assert best["expected_low"] < 0.85 < best["expected_high"]
    shown = run("show", lucky, "0").out
    assert "  0.95 at 2, the best on the way\n" in shown
    assert "if trained again" in shown
    assert "0.72 ± 0.033 (90%)\n" in shown
    assert "expected" in run("trials", lucky).out.splitlines()[0]
    found = run("trials", lucky, "--where", "expected_deviation > 0", "--sort", "expected").out
    assert [line.split()[0] for line in found.splitlines()[1:]] == ["0", "1"]


def test_without_a_name_the_only_study_is_meant_and_told_on_stderr(run, flowers):
    said = run("best", "--format", "json")
    assert json.loads(said.out)[0]["study"] == flowers
    assert said.err == "study flowers\n"


def test_one_of_several_studies_must_be_named_and_a_hint_names_the_database_that_was_named(
    run, flowers, save, sqlite_url, monkeypatch
):
    save("trees", [])
    said = run("status")
    assert said.code == 2
    assert "name one" in said.err
    assert "hpsearch ls" in said.err
    monkeypatch.delenv("HPSEARCH_STORAGE", raising=False)
    said = run("status", "--storage", sqlite_url)
    assert f"hpsearch ls --storage {sqlite_url}\n" in said.err


def test_trials_are_chosen_and_ordered_and_numbers_that_json_does_not_know_are_null(run, flowers):
    said = run(
        "trials",
        flowers,
        "--where",
        "lr < 0.5 and role = 'search'",
        "--sort",
        "lr",
        "--format",
        "json",
    )
    assert [row["number"] for row in json.loads(said.out)] == [2, 0]
    rows = json.loads(run("trials", flowers, "--where", "number = 1", "--format", "json").out)
    assert rows[0]["metrics"] == {"accuracy": None, "loss": 0.5}


def test_show_tells_a_trials_story_also_from_a_number_alone(run, flowers):
    text = run("show", flowers, "1").out
    for told in ("diverged: loss is nan", "worker-0", "opt", "lion", "budget used"):
        assert told in text
    tree = json.loads(run("show", flowers, "1", "--format", "json").out)
    assert tree["attempts"][0]["outcome"] == "failed"
    assert [r["resource"] for r in tree["reports"]] == [3.0]
    assert yaml.safe_load(run("show", flowers, "1", "--format", "yaml").out) == tree
    assert json.loads(run("show", "2", "--format", "json").out)["number"] == 2


def test_the_line_above_a_table_is_whole_where_the_table_is_narrower(run, save):
    save("narrow", [Trial(0, State.COMPLETE, {"x": 1}, value=1.0)])
    assert "\nparameters\nx  1\n" in run("show", "narrow", "0").out


@pytest.mark.parametrize("words", [["flowers"], ["flowers", "two"], ["a", "b", "3"]])
def test_show_takes_a_study_and_a_number(run, flowers, words):
    said = run("show", *words)
    assert said.code == 2
    assert "hpsearch show NAME 7" in said.err


def test_status_tells_what_is_used_and_what_failed(run, flowers):
    text = run("status", flowers).out
    for told in (
        *("1 pruned", "4 complete", "finished: budget used"),
        *("4 trials of 5", "diverged", "loss is nan"),
    ):
        assert told in text
    found = json.loads(run("status", flowers, "--format", "json").out)
    assert found["budget"]["gpu_seconds"] == {"used": 180.0, "limit": 3600}
    assert found["best"]["number"] == 2


def test_status_adds_up_what_checkpoints_take_beside_their_limit(run, save):
    trials = [
        Trial(n, State.COMPLETE, {"lr": 0.1}, value=0.5, checkpoint_bytes=n * 10**9) for n in (0, 1)
    ]
    trials.append(Trial(2, State.FAILED, {"lr": 0.2}, error_kind=ErrorKind.ERROR))
    save("limited", trials, "study: limited\ncheckpoints: {max_gb: 2.5}\n")
    assert "1 GB of 2.5 GB in" in run("status", "limited").out
    found = json.loads(run("status", "limited", "--format", "json").out)
    assert (found["checkpoint_bytes"], found["checkpoint_limit_bytes"]) == (10**9, 2.5e9)


def test_the_best_of_a_trial_that_waits_is_where_its_best_weights_are(run, save):
    save(
        "waiting",
        [
            Trial(
                0,
                State.PAUSED,
                {"lr": 0.1},
                value=0.5,
                checkpoint="/newest",
                best_checkpoint="/best",
            )
        ],
    )
    (found,) = json.loads(run("best", "waiting", "--format", "json").out)
    assert found["checkpoint"] == "/best"


def test_tables_that_are_piped_are_plain_lines(run, flowers):
    for command in (["ls"], ["status"], ["best"], ["trials"], ["show", "0"]):
        text = run(*command).out
        assert "\x1b" not in text
        assert not set(text) & set("─│┃━╭")
        assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_has_a_column_for_each_name(run, flowers, tmp_path, ending):
    to = tmp_path / f"trials.{ending}"
    said = run("export", flowers, "--to", str(to))
    frame = pd.read_csv(to) if ending == "csv" else pd.read_parquet(to)
    assert said.code == 0
    assert said.out == ""
    assert list(frame["lr"]) == [0.1, 0.9, 0.01, 0.5, 0.01, 0.01]
    assert frame.loc[0, "accuracy"] == 0.7
    assert list(tmp_path.glob(".*")) == []


def test_a_parameter_of_several_types_is_exported_as_text(run, save, tmp_path):
    values = [1, "auto", True, None, 2.5]
    save("mixed", [Trial(n, State.QUEUED, {"x": x, "y": n}) for n, x in enumerate(values)])
    assert run("export", "--to", str(tmp_path / "t.parquet")).code == 0
    frame = pd.read_parquet(tmp_path / "t.parquet")
    assert frame["x"].fillna("absent").tolist() == ["1", "auto", "true", "absent", "2.5"]
    assert frame["y"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("what", ["reports", "attempts"])
def test_reports_and_attempts_are_exported_too(run, flowers, tmp_path, what):
    run("export", flowers, "--to", str(tmp_path / "parts.csv"), "--what", what)
    assert list(pd.read_csv(tmp_path / "parts.csv")["trial"]) == [0, 1, 2, 3, 4, 5]


def test_an_export_replaces_a_file_only_when_forced(run, flowers, tmp_path):
    to = tmp_path / "mine.csv"
    to.write_text("precious")
    said = run("export", flowers, "--to", str(to))
    assert said.code == 2
    assert "--force" in said.err
    assert to.read_text() == "precious"
    assert run("export", flowers, "--to", str(to), "--force").code == 0
    assert to.read_text() != "precious"


@pytest.mark.parametrize("driven", [True, False], ids=["a driver owns it", "its driver died"])
def test_the_best_trial_is_running_only_while_a_driver_runs_it(run, save, sqlite_url, driven):
    save("open", [Trial(0, State.RUNNING, {"lr": 0.1}, value=0.5123, resource=1.0)])
    with closing(Store.open(sqlite_url)) as store:
        record = store.find_study("open")
        lease = store.acquire(record.id, "ada@host:123", 3600.0)
        record.state, record.reason = StudyState.RUNNING, None
        store.commit(record.id, Changes(study=record), lease, 3600.0)
        if not driven:
            store.release(lease)
    listed, status = run("ls").out, run("status", "open").out
    shown = "0.5123 (running)" if driven else "0.5123 (queued)"
    assert ("abandoned" in listed) is not driven
    assert shown in listed
    assert f"{shown}, trial 0" in status
