"""Choices that are lists and mappings, from a study's file to everything that reads the study."""

import csv
import io
import json
import warnings
from collections.abc import Callable
from contextlib import closing
from typing import Any

import optuna
import pandas as pd
import pytest
import yaml
from optuna.storages import RDBStorage

import hpsearch
from hpsearch.domain.history import History
from hpsearch.plugins.optuna.storages import UNPOOLED
from hpsearch.running.study_run import requests
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support.files.past_runs import command, imported

LAYERS: list[Any] = [[64], [64, 64], [], "[64", None]
OPTIMIZERS: list[Any] = [{"name": "adam", "betas": [0.9, 0.99]}, {"name": "sgd"}]
STUDY = {
    "study": "nested",
    "space": {
        "layers": {"type": "categorical", "choices": LAYERS},
        "opt": {"type": "categorical", "choices": OPTIMIZERS, "prior": OPTIMIZERS[1]},
        "lr": {"type": "float", "low": 0.0, "high": 1.0, "when": {"layers": [[64], [64, 64]]}},
    },
    "requires": ["layers != '[]' or opt == '{\"name\": \"sgd\"}'"],
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 14, "per_trial": {"epochs": 2}},
    "search": {"pruner": "none"},
    "enqueue": [{"layers": [64.0, 64], "opt": {"betas": [0.9, 0.99], "name": "adam"}, "lr": 0.5}],
}

Read = Callable[..., Any]


@pytest.fixture
def url(database_url: str) -> str:
    """A database in which the study was asked to its end, by code that changes its parameters."""
    with hpsearch.create(database_url, STUDY) as study:
        while (trial := study.ask()) is not None:
            layers, opt = trial.params["layers"], trial.params["opt"]
            assert layers in LAYERS
            assert opt in OPTIMIZERS
            depth = len(layers) if isinstance(layers, list) else 3
            study.tell(trial, {"loss": depth + trial.params.get("lr", 0.5) + len(opt) / 10})
            opt["name"] = "changed"
            if isinstance(layers, list):
                layers.append(0)
    return database_url


@pytest.fixture
def read(url: str, capsys: pytest.CaptureFixture[str]) -> Read:
    """The standard output of a command on the study."""

    def run(*words: str) -> str:
        capsys.readouterr()
        assert command(*words, "--storage", url) == 0
        return capsys.readouterr().out

    return run


def history(url: str) -> History:
    with closing(Store.open(url, create=False)) as store:
        return store.load("nested")


def test_they_are_on_record_and_tables_files_optunas_tools_and_pictures_read_them(
    url, read, tmp_path
):
    trials = history(url).trials
    assert trials[0].params == {"layers": [64, 64], "opt": OPTIMIZERS[0], "lr": 0.5}
    assert all(trial.params["layers"] in LAYERS for trial in trials)
    assert all(("lr" in trial.params) == (trial.params["layers"] in LAYERS[:2]) for trial in trials)
    assert [row["params"] for row in json.loads(read("trials", "nested", "--format", "json"))] == [
        trial.params for trial in trials
    ]
    with closing(Store.open(url, create=False)) as store, store.reading() as connection:
        assert violations(connection) == []
    printed = list(csv.DictReader(io.StringIO(read("trials", "nested", "--format", "csv"))))
    expected = [json.dumps(trial.params["opt"]) for trial in history(url).trials]
    assert [row["params.opt"] for row in printed] == expected
    for name in ("trials.csv", "trials.parquet"):
        assert command("export", "nested", "--to", str(tmp_path / name), "--storage", url) == 0
    frames = [pd.read_csv(tmp_path / "trials.csv"), pd.read_parquet(tmp_path / "trials.parquet")]
    assert [list(frame["opt"]) for frame in frames] == [expected, expected]
    assert "[64, 64]" in read("trials", "nested")
    assert '{"name": "adam", "betas": [0.9, 0.99]}' in read("show", "nested", "0")
    other = next(t for t in history(url).trials if t.params["layers"] != [64, 64])
    assert "[64, 64]" in read("show", "nested", "0", str(other.number))
    best = yaml.safe_load(read("best", "nested", "--format", "yaml"))
    assert best["settings"]["opt"] in OPTIMIZERS
    with hpsearch.open(url, "nested") as study:
        as_optunas = study.optuna()
        params = ["layers", "opt"]
        importances = optuna.importance.get_param_importances(as_optunas, params=params)
        assert set(importances) == {"layers", "opt"}
        for plot in (
            optuna.visualization.plot_parallel_coordinate,
            optuna.visualization.plot_contour,
            optuna.visualization.plot_slice,
        ):
            assert plot(as_optunas, params=params).data
        frame = study.trials(where="layers = '[64,64]'")
        assert frame["layers"].iloc[0] == [64, 64]
        assert study.plot_importances().data
        assert study.plot_slices().data
        assert study.plot_parallel_coordinates().data
    page = tmp_path / "page.html"
    read("report", "nested", "--out", str(page))
    assert "[64, 64]" in page.read_text()


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ("layers = '[64, 64]'", lambda p: p["layers"] == [64, 64]),
        ("layers in ('[64.0,64]', '[ ]')", lambda p: p["layers"] in ([64, 64], [])),
        ("layers != '[64]'", lambda p: p["layers"] != [64]),
        ("layers = '[64'", lambda p: p["layers"] == "[64"),
        ("layers is null", lambda p: p["layers"] is None),
        ("layers < 'a'", lambda p: p["layers"] == "[64"),
        ('opt = \'{"betas":[0.90,0.99],"name":"adam"}\'', lambda p: p["opt"] == OPTIMIZERS[0]),
        ("opt = '{}'", lambda p: False),
    ],
)
def test_filters_choose_them_by_their_json(url, read, where, chosen):
    rows = json.loads(read("trials", "nested", "--format", "json", "--where", where))
    trials = history(url).trials
    assert [row["number"] for row in rows] == [
        trial.number for trial in trials if chosen(trial.params)
    ]


def test_past_runs_come_back_from_a_table(url, sqlite_url, tmp_path):
    table = tmp_path / "trials.csv"
    assert command("export", "nested", "--to", str(table), "--storage", url) == 0
    columns = ["--params", "opt,lr", "--metric", "loss", "--direction", "minimize"]
    found = imported(sqlite_url, table, *columns)
    assert [trial.params["opt"] for trial in found.trials] == [
        trial.params["opt"] for trial in history(url).trials
    ]
    choices = yaml.safe_load(found.study.spec)["space"]["opt"]["choices"]
    assert sorted(choices, key=str) == sorted(OPTIMIZERS, key=str)


def test_optuna_has_their_texts_and_gives_them_back(url, sqlite_url, tmp_path, capsys):
    to = f"sqlite:///{tmp_path}/optuna.db"
    assert command("export", "nested", "--to", to, "--storage", url) == 0
    with warnings.catch_warnings(action="error", category=UserWarning):
        copied = optuna.load_study(study_name="nested", storage=RDBStorage(to, UNPOOLED))
        trials = copied.trials
        assert trials[0].params["layers"] == "[64, 64]"
    back = imported(sqlite_url, to)
    assert [trial.params for trial in back.trials] == [
        trial.params for trial in history(url).trials
    ]
    assert yaml.safe_load(back.study.spec)["space"]["opt"]["choices"] == OPTIMIZERS


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_a_study_of_optuna_whose_choices_are_lists_is_imported(sqlite_url, tmp_path):
    to = f"sqlite:///{tmp_path}/theirs.db"
    theirs = optuna.create_study(storage=RDBStorage(to, UNPOOLED))
    choices: list[Any] = [[64], [64, 64], {"a": 1}]
    theirs.optimize(lambda trial: len(trial.suggest_categorical("c", choices)), n_trials=6)
    expected = [trial.params["c"] for trial in theirs.trials]
    found = imported(sqlite_url, to)
    assert [trial.params["c"] for trial in found.trials] == expected
    assert yaml.safe_load(found.study.spec)["space"]["c"]["choices"] == choices


def test_more_can_be_asked_for_on_the_command_line(database_url, monkeypatch):
    monkeypatch.setattr(requests, "WAIT_S", 0.0)  # the study hears of it when it is asked next
    with hpsearch.create(database_url, {**STUDY, "enqueue": []}) as study:
        trial = study.ask()
        assert trial is not None
        for words in ("opt={name: sgd}, layers=[64], lr=0.25", 'opt={"name": "sgd"}, layers=[]'):
            assert command("enqueue", "nested", words, "--storage", database_url) == 0
        assert command("enqueue", "nested", "layers=[65]", "--storage", database_url) == 2
        asked = []
        for _ in range(2):
            study.tell(trial, {"loss": 1.0})
            trial = study.ask()
            assert trial is not None
            asked.append(trial.params)
    expected = {"layers": [64], "opt": {"name": "sgd"}, "lr": 0.25}
    assert asked == [expected, {"layers": [], "opt": {"name": "sgd"}}]
