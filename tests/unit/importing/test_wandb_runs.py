"""Past runs from exports of W&B."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from past_runs import imported, refused, states, values

OPTIONS = ("--metric", "val_loss", "--direction", "minimize")
WEB = """"Name","State","Notes","User","Created","Runtime","Sweep","ID","batch","lr","val_loss"
"warm-sweep-1","finished","-","me","2026-01-02T03:04:05.000Z","61","s1","abc1","16","0.01","0.5"
"warm-sweep-1","crashed","-","me","2026-01-02T03:05:05.000Z","9","s1","abc2","32","0.1",""
"cold-sweep-3","killed","a,b","me","2026-01-02T03:06:05.000Z","9","s1","abc3","32","0.001","0.9"
"""


def run(**changes: Any) -> dict[str, Any]:
    """A run as the API has it."""
    usual = {
        "id": "r1",
        "state": "finished",
        "created_at": "2026-01-02T03:04:05Z",
        "config": {"lr": 0.1, "model": {"depth": 3}, "seed": 7, "_wandb": {"v": 1}},
        "summary": {"val_loss": 0.4, "_step": 2, "_runtime": 30, "best": {"max": 1}},
        "history": [
            {"_step": 0, "val_loss": 0.9, "lr_now": 0.1},
            {"_step": 1, "train_loss": 0.3},
            {"_step": 2, "val_loss": 0.4},
        ],
    }
    return {**usual, **changes}


def lines(path: Path, *runs: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in runs))
    return path


OTHER = {"id": "r2", "config": {"lr": 0.2, "model": {"depth": 5}, "seed": 7}}


def test_the_table_of_the_web_page_has_its_states_and_ids(tmp_path: Path, sqlite_url: str) -> None:
    (tmp_path / "project.csv").write_text(WEB)
    history = imported(sqlite_url, tmp_path / "project.csv", *OPTIONS, "--params", "lr,batch")
    assert states(history) == ["complete", "failed", "pruned"]
    assert values(history) == [0.5, None, 0.9]
    assert [trial.user_attrs["imported_as"] for trial in history.trials] == ["abc1", "abc2", "abc3"]
    assert yaml.safe_load(history.study.spec)["imported"]["from"] == "W&B"


def test_lines_of_the_api_have_curves_and_nested_parameters(
    tmp_path: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    history = imported(sqlite_url, lines(tmp_path / "runs.jsonl", run(), run(**OTHER)), *OPTIONS)
    first = history.trials[0]
    assert first.params == {"lr": 0.1, "model.depth": 3}
    curve = {at: report.value for at, report in first.reports.items()}
    assert curve == {1.0: 0.9, 3.0: 0.4}
    assert first.reports[1.0].metrics == {"val_loss": 0.9, "lr_now": 0.1}
    assert first.started is not None
    assert first.ended == first.started + 30
    assert "the same in all runs, and left out: seed" in capsys.readouterr().err


def test_a_file_of_history_beside_it_is_read(tmp_path: Path, sqlite_url: str) -> None:
    rows = run()["history"]
    lines(tmp_path / "r1.history.jsonl", *rows)
    one = run(history=None, history_file="r1.history.jsonl")
    source = lines(tmp_path / "runs.jsonl", one, run(**OTHER, history=None))
    history = imported(sqlite_url, source, *OPTIONS)
    assert list(history.trials[0].reports) == [1.0, 3.0]


def test_a_result_that_is_not_finite_is_a_failure(tmp_path: Path, sqlite_url: str) -> None:
    odd = run(**OTHER, summary={"val_loss": "NaN"}, history=[])
    history = imported(sqlite_url, lines(tmp_path / "runs.jsonl", run(), odd), *OPTIONS)
    assert history.trials[1].error_kind == "diverged"


def test_the_table_of_the_guide_to_exports_is_read(tmp_path: Path, sqlite_url: str) -> None:
    two = [run(), run(**OTHER, summary={"val_loss": 0.7, "acc": float("nan")})]
    columns = {key: [each[key] for each in two] for key in ("summary", "config")}
    table = pd.DataFrame({**columns, "name": ["a", "b"]})
    table.to_csv(tmp_path / "project.csv")
    history = imported(sqlite_url, tmp_path / "project.csv", *OPTIONS)
    assert values(history) == [0.4, 0.7]
    assert history.trials[1].params == {"lr": 0.2, "model.depth": 5}


def test_folders_of_runs_are_read(tmp_path: Path, sqlite_url: str) -> None:
    for name, lr in (("run-20260102_030405-aaa", 0.1), ("offline-run-20260102_030405-bbb", 0.2)):
        files = tmp_path / "wandb" / name / "files"
        files.mkdir(parents=True)
        config = {"wandb_version": 1, "lr": {"desc": None, "value": lr}, "_wandb": {"value": {}}}
        (files / "config.yaml").write_text(yaml.safe_dump(config))
        (files / "wandb-summary.json").write_text(json.dumps({"val_loss": lr * 2, "_step": 4}))
    history = imported(sqlite_url, tmp_path / "wandb", *OPTIONS)
    found = {trial.user_attrs["imported_as"]: trial for trial in history.trials}
    assert found["aaa"].params == {"lr": 0.1}
    assert found["bbb"].value == 0.4


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (run(id="r1"), "runs.jsonl:2: r1 occurs twice, first at runs.jsonl:1"),
        (run(**OTHER, state="odd"), "runs.jsonl:2: state: 'odd' is not a known state"),
        (run(**OTHER, summary={"val_los": 1}, history=[]), "is complete and has no val_loss"),
        (run(**OTHER, summary={"val_loss": "low"}), "val_loss is 'low', which is not a number"),
        (run(**OTHER, history=[{"_step": 1, "val_loss": 1}] * 2), "_step is 1 after 1"),
        (run(**OTHER, history=[{"val_loss": 1}]), "history[0]: has no number _step"),
        (
            run(**OTHER, history_file="no.jsonl", history=None),
            "history_file no.jsonl cannot be read",
        ),
        ({"id": "r2", "summary": {}}, "runs.jsonl:2: is not an object with config and summary"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(
    second: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, lines(tmp_path / "runs.jsonl", run(), second), *OPTIONS)


def test_an_offline_run_without_its_files_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wandb" / "offline-run-1-x" / "files").mkdir(parents=True)
    said = refused(capsys, tmp_path / "wandb", *OPTIONS)
    assert "offline-run-1-x: has no files/config.yaml; upload it (wandb sync)" in said
