"""Study files from scripts that call `study.optimize`: a script is run, and nobody writes YAML."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.errors import UserError
from hpsearch.plugins.optuna import script
from hpsearch.running.creation.sources import translated
from hpsearch.study_file.reading import parse

WHOLE = """
import argparse
import optuna

class Objective:
    def __init__(self, epochs):
        self.epochs = epochs
    def __call__(self, trial):
        x = trial.suggest_float("x", 0, 1)
        for epoch in range(self.epochs):
            trial.report(x, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

def limits(trial):
    return (trial.params["x"] - 0.5,)

def stopping(study, trial):
    study.stop()

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, required=True)
    epochs = parser.parse_args().epochs
    sampler = optuna.samplers.TPESampler(
        n_startup_trials=5, multivariate=True, seed=7, gamma=min, constraints_func=limits
    )
    pruner = optuna.pruners.PatientPruner(optuna.pruners.MedianPruner(n_warmup_steps=2), patience=3)
    study = optuna.create_study(
        study_name="digits", storage="sqlite:///theirs.db", load_if_exists=True,
        direction="maximize", sampler=sampler, pruner=pruner,
    )
    study.set_metric_names(["accuracy"])
    study.set_user_attr("data", "digits")
    study.enqueue_trial({"x": 0.25}, user_attrs={"why": "known"})
    study.enqueue_trial({"x": 0.5})
    most = optuna.study.MaxTrialsCallback(20, states=None)
    study.optimize(
        Objective(epochs), n_trials=50, timeout=600, n_jobs=2, catch=(ValueError,),
        callbacks=[most, stopping],
    )
    study.optimize(Objective(9), n_trials=1)

if __name__ == "__main__":
    main()
"""


def carried_over(source: str, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The study file of a script, and the remarks."""
    text, remarks = translated(source, None, folder)
    content: dict[str, Any] = yaml.safe_load(text)
    return content, remarks


def written(folder: Path, text: str) -> str:
    (folder / "search.py").write_text(text)
    return str(folder / "search.py")


def test_all_of_a_script_is_read_or_named_as_lost(tmp_path):
    content, remarks = carried_over(f"{written(tmp_path, WHOLE)} --epochs 4", tmp_path)
    assert content == {
        "study": "digits",
        "seed": 7,
        "task": {"kind": "search:__main__", "library": "optuna", "args": {"epochs": 4}},
        "objective": {"metric": "accuracy", "direction": "maximize"},
        "budget": {"trials": 20, "wall_clock": 600, "per_trial": {"steps": 4}},
        "search": {
            "sampler": {"kind": "tpe", "n_startup_trials": 5, "multivariate": True},
            "pruner": {
                "kind": "patient",
                "wrapped_pruner": {"kind": "median", "n_warmup_steps": 3},
                "patience": 3,
            },
        },
        "enqueue": [{"x": 0.25}, {"x": 0.5}],
        "resources": {"workers": 2},
    }
    told = "\n".join(remarks)
    for part in (
        "gamma of TPESampler cannot be carried over",
        "the callback stopping is not called",
        "the user attributes of enqueued trials are not carried over",
        "its storage is not used",
        "a trial reports 4 steps at most, as the script says",
    ):
        assert part in told
    assert "constraints_func" not in told
    assert not (tmp_path / "theirs.db").exists()


SHORT = """
import optuna
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    epochs = trial.suggest_int("epochs", 3, 12)
    for epoch in range(epochs):
        trial.report(x, ORDER)
    REST
optuna.create_study(SEARCH).optimize(objective)
"""


def short(order: str = "epoch", rest: str = "return x", search: str = "") -> str:
    return SHORT.replace("ORDER", order).replace("REST", rest).replace("SEARCH", search)


def test_a_length_that_is_searched_is_the_longest_one(tmp_path):
    content, remarks = carried_over(written(tmp_path, short("epoch + 1")), tmp_path)
    assert content["budget"] == {"trials": 20, "per_trial": {"steps": 12}}
    assert content["search"] == {"pruner": "none"}
    told = "\n".join(remarks)
    assert "as many steps as epochs says, 12 at most" in told
    assert "never asks should_prune" in told
    assert "searches until it is stopped: 20 trials here" in told


STOPPING = """
import optuna
n_estimators = 300
def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    LOOP
        trial.report(x, step)
        if trial.should_prune() or step == 11:
            break
    return x
pruner = optuna.pruners.MedianPruner(n_warmup_steps=WARM_UP)
optuna.create_study(pruner=pruner).optimize(objective)
"""


@pytest.mark.parametrize(
    ("loop", "warm_up", "steps", "told"),
    [
        ("for step in range(n_estimators):", 0, 300, "300 steps at most, as the script says"),
        ("for step in range(0, 10 * 4, 1):", 0, 40, "40 steps at most, as the script says"),
        ("for step in map(int, range(200)):", 0, 200, "200 steps at most, as the script says"),
        ("for step, _ in enumerate([0] * 40):", 0, 48, "the first one ended at 12; 48 leave room"),
        ("for step, _ in enumerate([0] * 40):", 51, 102, "ended at 12; 102 leave room"),
    ],
)
def test_where_one_trial_ended_is_no_limit_of_others(tmp_path, loop, warm_up, steps, told):
    text = STOPPING.replace("LOOP", loop).replace("WARM_UP", str(warm_up))
    content, remarks = carried_over(written(tmp_path, text), tmp_path)
    assert content["budget"]["per_trial"] == {"steps": steps}
    assert told in "\n".join(remarks)


def test_samplers_that_fix_or_list_parameters_are_read(tmp_path):
    grid = "optuna.samplers.GridSampler({'x': [0.25, 0.75]})"
    content, _ = carried_over(written(tmp_path, short(search=f"sampler={grid}")), tmp_path)
    assert content["space"] == {"x": {"type": "categorical", "choices": [0.25, 0.75]}}
    assert content["search"]["sampler"] == "brute_force"
    assert content["budget"]["trials"] == 2


def test_a_trial_that_fails_or_a_sampler_of_ones_own_is_told(tmp_path):
    own = "sampler=type('Own', (optuna.samplers.RandomSampler,), {})()"
    source = written(tmp_path, short("20 - epoch", "raise OSError('no data')", own))
    _, remarks = carried_over(source, tmp_path)
    told = "\n".join(remarks)
    assert "the first trial fails: OSError: no data" in told
    assert "Own cannot be carried over" in told
    assert "reports its steps in no order" in told


def test_the_length_of_a_trial_that_does_not_end_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "LIMIT_S", 0.0)
    forever = short(rest="import threading\n    threading.Event().wait()")
    content, remarks = carried_over(written(tmp_path, forever), tmp_path)
    assert content["budget"]["per_trial"] == {}
    assert any("sets no length" in each for each in remarks)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("print('optuna')", "ends without a call of study.optimize"),
        ("print()", "does not use Optuna"),
        ("from ray import tune", "docs/ray-tune.md"),
        ("import wandb\nwandb.sweep({})", "gives to wandb.sweep, .* into sweep.yaml"),
        ("import os, optuna\nos._exit(3)", "ended by itself, with code 3"),
    ],
)
def test_scripts_without_a_search_are_refused(text, says, tmp_path):
    with pytest.raises(UserError, match=says):
        translated(written(tmp_path, text), None, tmp_path)


def test_a_script_that_workers_would_not_find_is_refused(tmp_path):
    (tmp_path / "studies").mkdir()
    with pytest.raises(UserError, match="from the folder of the study file"):
        translated(written(tmp_path, short()), None, tmp_path / "studies")
    (tmp_path / "random.py").write_text(short())
    translated(str(tmp_path / "random.py"), None, tmp_path)  # it is loaded by its path


def test_the_study_file_passes_its_own_check(tmp_path):
    text, _ = translated(written(tmp_path, short()), "mine", tmp_path)
    assert parse(text, base=tmp_path).study == "mine"
