"""Past runs from a storage that the real Optuna wrote."""

import shutil
import warnings
from pathlib import Path

import optuna
import pytest
import yaml
from optuna.storages import RDBStorage

from hpsearch.plugins.optuna.storages import UNPOOLED
from support.files.past_runs import command, imported, refused, states, values


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 1e-4, 1.0, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b", None])
    if kind == "a":
        trial.suggest_int("n", 2, 10, step=2)
    for step in range(4):
        trial.report(x * step, step)
        if trial.number == 1 and step == 1:
            raise optuna.TrialPruned
    if trial.number == 2:
        raise ValueError
    return x


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of Optuna's with three studies."""
    path = tmp_path_factory.mktemp("optuna") / "optuna.db"
    storage = RDBStorage(f"sqlite:///{path}", UNPOOLED)
    sampler = optuna.samplers.RandomSampler(seed=3)
    study = optuna.create_study(
        study_name="one", storage=storage, direction="maximize", sampler=sampler
    )
    study.optimize(objective, n_trials=8, catch=(ValueError,))
    study.ask()  # runs for ever, and has reported nothing
    both = optuna.create_study(
        study_name="two", storage=storage, directions=["maximize", "minimize"], sampler=sampler
    )
    with warnings.catch_warnings(action="ignore", category=optuna.exceptions.ExperimentalWarning):
        both.set_metric_names(["accuracy", "seconds"])
    both.optimize(lambda trial: (trial.suggest_float("x", 0, trial.number + 1), 2.0), n_trials=4)
    optuna.create_study(study_name="none", storage=storage)
    return path


def test_states_values_curves_and_times_come_along(database, sqlite_url, capsys):
    url = f"sqlite:///{database}"
    history = imported(sqlite_url, url, "--study", "one")
    theirs = optuna.load_study(study_name="one", storage=RDBStorage(url, UNPOOLED)).trials[:8]
    assert states(history)[:4] == ["complete", "pruned", "failed", "complete"]
    assert len(history.trials) == 8
    for trial, frozen in zip(history.trials, theirs, strict=True):
        assert trial.params == frozen.params
        assert trial.distributions == frozen.distributions
        curve = {at: report.value for at, report in trial.reports.items()}
        assert curve == {step + 1: value for step, value in frozen.intermediate_values.items()}
        assert frozen.datetime_start is not None
        assert trial.started == pytest.approx(frozen.datetime_start.timestamp())
    assert values(history)[0] == theirs[0].value
    said = capsys.readouterr().err
    assert "steps are counted from 0 there, and from 1 here" in said
    assert "1 unfinished runs without a report were left out" in said


def test_the_space_is_that_of_the_distributions(database, sqlite_url):
    written = yaml.safe_load(
        imported(sqlite_url, f"sqlite:///{database}", "--study", "one").study.spec
    )
    assert written["space"] == {
        "x": {"type": "float", "low": 1e-4, "high": 1.0, "log": True},
        "kind": {"type": "categorical", "choices": ["a", "b", None]},
        "n": {"type": "int", "low": 2, "high": 10, "step": 2},
    }
    assert written["objective"] == {"metric": "value", "direction": "maximize"}


def test_points_of_a_grid_come_along_as_people_write_them(tmp_path, sqlite_url):
    url = f"sqlite:///{tmp_path}/grid.db"
    storage = RDBStorage(url, UNPOOLED)
    grid = {"s": [0.1 + 0.2, 0.5]}
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.GridSampler(grid))
    study.optimize(lambda trial: trial.suggest_float("s", 0.1, 0.9, step=0.1), n_trials=2)
    assert 0.1 + 0.2 in [trial.params["s"] for trial in study.trials]
    history = imported(sqlite_url, url)
    assert {trial.params["s"] for trial in history.trials} == {0.3, 0.5}


def test_several_objectives_keep_their_names_and_other_ranges_are_those_of_the_values(
    database, sqlite_url
):
    history = imported(sqlite_url, f"sqlite:///{database}", "--study", "two")
    assert history.study.directions == ("maximize", "minimize")
    assert all(trial.values is not None and trial.values[1] == 2.0 for trial in history.trials)
    written = yaml.safe_load(history.study.spec)
    assert [each["metric"] for each in written["objective"]] == ["accuracy", "seconds"]
    drawn = [trial.params["x"] for trial in history.trials]
    assert written["space"]["x"] == {"type": "float", "low": min(drawn), "high": max(drawn)}


def test_parameters_can_be_chosen_and_renamed(database, sqlite_url):
    options = ("--study", "one", "--params", "rate=x", "--metric", "accuracy")
    history = imported(sqlite_url, f"sqlite:///{database}", *options)
    assert list(history.trials[0].params) == ["rate"]
    assert list(history.trials[0].distributions) == ["rate"]
    assert "accuracy" in history.trials[0].reports[1.0].metrics


def test_nothing_is_written_to_the_storage(database, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(database, copy)
    imported(f"sqlite:///{tmp_path}/ours.db", f"sqlite:///{copy}", "--study", "one")
    assert copy.read_bytes() == database.read_bytes()


def test_what_cannot_be_read_is_refused(database, tmp_path, capsys):
    url = f"sqlite:///{database}"
    assert "name one: one, two, none" in refused(capsys, url)
    assert "has no study onn; did you mean one?" in refused(capsys, url, "--study", "onn")
    assert "holds no run that has ended" in refused(capsys, url, "--study", "none")
    wrong = (url, "--study", "one", "--direction", "minimize")
    assert "the study's direction is maximize" in refused(capsys, *wrong)
    assert "2 objectives, and 1 are named" in refused(
        capsys, url, "--study", "two", "--metric", "acc"
    )
    missing = f"sqlite:///{tmp_path}/missing.db"
    assert "there is no database at" in refused(capsys, missing)
    assert not (tmp_path / "missing.db").exists()
    assert "name it by its URL: sqlite:///" in refused(capsys, str(database))
    (tmp_path / "other.db").write_text("not a database, and longer than a header of SQLite is" * 9)
    assert "cannot be read" in refused(capsys, f"sqlite:///{tmp_path}/other.db")
    assert "is not the URL of a database" in refused(capsys, "://")


def test_a_password_is_not_shown(capsys):
    url = "postgresql://me:secret@127.0.0.1:1/none"
    said = refused(capsys, url)
    assert "secret" not in said
    assert command("import", "mysql://me:secret@127.0.0.1:1/none", "--name", "x") == 2
    assert "secret" not in capsys.readouterr().err


def test_a_storage_is_no_study_file(database, tmp_path, capsys):
    out = tmp_path / "study.yaml"
    assert command("init", str(out), "--from", f"sqlite:///{database}", "--name", "one") == 2
    assert "name the script; hpsearch import takes its trials" in capsys.readouterr().err
    assert command("init", str(out), "--from", f"sqlite:///{database}", "--metric", "a") == 2
    assert "only the loops of a script go with --metric" in capsys.readouterr().err
