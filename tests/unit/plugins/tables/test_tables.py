"""Past runs from tables: what each column becomes, and what is refused."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.records import StudyState
from support.files.past_runs import command, imported, refused, states, values

RUNS = """\
id,learning_rate,depth,optimizer,val_acc,status
a,0.001,2,sgd,0.71,finished
b,0.1,3,adam,0.83,finished
c,0.5,4,adam,nan,finished
d,0.0002,,adam,,crashed
e,0.02,8,sgd,0.62,killed
f,0.05,5,"s,gd",0.78,finished
"""
OPTIONS = ("--params", "lr=learning_rate, depth", "--params", "optimizer")
MEASURED = ("--metric", "accuracy=val_acc", "--direction", "maximize", "--run", "id")
ALL = (*OPTIONS, *MEASURED, "--state", "status")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(RUNS)
    return path


def test_a_row_becomes_a_trial_with_its_state_and_value(table, sqlite_url):
    history = imported(sqlite_url, table, *ALL)
    assert states(history) == ["complete", "complete", "failed", "failed", "pruned", "complete"]
    assert values(history) == [0.71, 0.83, None, None, 0.62, 0.78]
    assert history.trials[0].params == {"lr": 0.001, "depth": 2, "optimizer": "sgd"}
    assert history.trials[3].params == {"lr": 0.0002, "optimizer": "adam"}
    assert history.trials[2].error_kind is ErrorKind.DIVERGED
    assert history.trials[3].error_kind is ErrorKind.ERROR
    assert history.trials[1].reports[1.0].metrics == {"accuracy": 0.83}
    assert history.trials[5].user_attrs == {"imported_as": "f", "imported_from": "runs.csv row 6"}


def test_the_study_is_finished_and_says_where_it_is_from(table, sqlite_url):
    study = imported(sqlite_url, table, *ALL).study
    assert study.state is StudyState.FINISHED
    assert study.reason == f"imported from a table: {table}"
    written = yaml.safe_load(study.spec)
    assert written["imported"] == {"from": "a table", "source": str(table)}
    assert written["objective"] == {"metric": "accuracy", "direction": "maximize"}
    assert "task" not in written


def test_the_space_is_inferred_and_printed(table, sqlite_url, capsys):
    written = yaml.safe_load(imported(sqlite_url, table, *ALL).study.spec)
    assert written["space"] == {
        "lr": {"type": "float", "low": 0.0002, "high": 0.5, "log": True},
        "depth": {"type": "int", "low": 2, "high": 8},
        "optimizer": {"type": "categorical", "choices": ["adam", "s,gd", "sgd"]},
    }
    said = capsys.readouterr().err
    assert "lr: {type: float, low: 0.0002, high: 0.5, log: true}" in said
    assert "depth: {type: int, low: 2, high: 8}  # in 5 of 6 runs" in said


def test_a_column_of_states_that_is_not_named_is_suggested(table, sqlite_url, capsys):
    table.write_text("".join(RUNS.splitlines(keepends=True)[:3]))
    imported(sqlite_url, table, *OPTIONS, *MEASURED)
    assert "--state status" in capsys.readouterr().err


def test_two_decades_are_not_yet_logarithmic(tmp_path, sqlite_url):
    (tmp_path / "t.csv").write_text("x,loss\n0.01,1\n1.0,2\n")
    options = ("--params", "x", "--metric", "loss", "--direction", "minimize")
    written = yaml.safe_load(imported(sqlite_url, tmp_path / "t.csv", *options).study.spec)
    assert written["space"]["x"] == {"type": "float", "low": 0.01, "high": 1.0}


def test_parquet_and_csv_become_the_same(table, tmp_path):
    parquet = tmp_path / "runs.parquet"
    pd.read_csv(table).to_parquet(parquet)
    # pandas has read the result that was not a number as a missing one.
    text = table.read_text().replace("c,0.5,4,adam,nan,finished", "c,0.5,4,adam,,crashed")
    pd.read_csv(table).assign(status=lambda t: t.status.where(t.id != "c", "crashed")).to_parquet(
        parquet
    )
    table.write_text(text)
    first = imported(f"sqlite:///{tmp_path}/a.db", table, *ALL)
    second = imported(f"sqlite:///{tmp_path}/b.db", parquet, *ALL)
    assert states(first) == states(second)
    assert values(first) == values(second)
    assert [each.params for each in first.trials] == [each.params for each in second.trials]


def test_several_objectives_are_kept(tmp_path, sqlite_url):
    (tmp_path / "t.csv").write_text("x,acc,ms\n1,0.5,9\n2,0.6,8\n")
    metrics = ("--metric", "acc", "--metric", "ms", "--params", "x")
    directions = ("--direction", "maximize", "--direction", "minimize")
    history = imported(sqlite_url, tmp_path / "t.csv", *metrics, *directions)
    assert history.study.directions == ("maximize", "minimize")
    assert [trial.values for trial in history.trials] == [[0.5, 9.0], [0.6, 8.0]]


def test_unfinished_runs_are_pruned_or_left_out(tmp_path, sqlite_url, capsys):
    text = "x,loss,state\n1,0.5,running\n2,,running\n3,0.4,done\n4,,waiting\n"
    (tmp_path / "t.csv").write_text(text)
    options = ("--params", "x", "--metric", "loss", "--direction", "minimize", "--state", "state")
    history = imported(sqlite_url, tmp_path / "t.csv", *options)
    assert states(history) == ["pruned", "complete"]
    assert "2 unfinished runs without a report were left out" in capsys.readouterr().err


def test_a_dry_run_writes_nothing(table, tmp_path):
    url = f"sqlite:///{tmp_path}/none.db"
    words = ("import", str(table), "--name", "old", "--storage", url, *ALL, "--dry-run")
    assert command(*words) == 0
    assert not (tmp_path / "none.db").exists()


def test_a_name_that_is_taken_is_refused(table, sqlite_url, capsys):
    imported(sqlite_url, table, *ALL)
    words = ("import", str(table), "--name", "old", "--storage", sqlite_url, *ALL)
    assert command(*words) == 2
    assert "choose another --name" in capsys.readouterr().err


def test_a_row_counts_once_with_a_line_break_in_a_cell(tmp_path, capsys):
    (tmp_path / "t.csv").write_text('note,x,loss\n"two\nlines",1,0.5\nb,2,bad\n')
    options = ("--params", "x", "--metric", "loss", "--direction", "minimize")
    said = refused(capsys, tmp_path / "t.csv", *options)
    assert "t.csv row 2: loss is 'bad', which is not a number" in said
