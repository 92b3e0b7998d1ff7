"""The result of a study, as `run`, `best` and `status` tell it."""

import functools
import io
import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpsearch.cli.results.best import print_result
from hpsearch.domain.facts import NEXT_HOUR, NextHour, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.store.store import Store
from support.studies.driven import drive
from support.studies.reported import save as save_study
from support.studies.small import Bowl, spec_with


def answered(url: str, name: str) -> str:
    out = io.StringIO()
    with closing(Store.open(url)) as store, redirect_stdout(out):
        print_result(store, name, lambda command: f"hpsearch {command} --storage there")
    return out.getvalue()


def test_a_confirmed_best_is_told_with_its_interval_and_the_next_two_commands(flowers, sqlite_url):
    told = answered(sqlite_url, flowers)
    assert "best configuration: trial 2" in told
    assert "lr   0.01" in told
    assert told.startswith("accuracy 0.87, from 4 trials; mean of 2 trainings\n"), told
    assert "0.87 if trained again, 90% of the time between " in told
    assert "6 trials, 4 complete, 1 stopped early, 1 failed" in told
    assert "3 min of compute time" in told
    assert (
        told.index("lr   0.01")
        < told.index("hpsearch train flowers --storage there")
        < told.index("hpsearch best --top 5 flowers")
        < told.index("in detail")
    )


def test_a_study_without_a_value_says_so_and_where_to_look(save, sqlite_url):
    save("garden", [Trial(0, State.PRUNED, {"lr": 0.1})])
    told = answered(sqlite_url, "garden")
    assert told.startswith("no result: its trial has no value\n")
    assert "hpsearch trials garden" in told


@pytest.mark.parametrize(
    ("task", "commands"),
    [
        ("{kind: tabular, train: x.csv, target: y}", ["train --trial 0"]),
        ('{kind: "code:train"}', ['best --where "number = 0" --format yaml', "python -m trials"]),
        ('{kind: "code:train", library: optuna}', ['best --where "number = 0" --format json']),
    ],
)
def test_of_several_objectives_one_trial_is_named_to_go_on_with(sqlite_url, task, commands):
    spec = f"""
study: two
task: {task}
space: {{x: {{type: float, low: 0.0, high: 1.0}}}}
objective:
- {{metric: loss, direction: minimize}}
- {{metric: size, direction: minimize}}
budget: {{trials: 5, per_trial: {{epochs: 3}}}}
"""
    trial = Trial(0, State.COMPLETE, {"x": 0.1}, value=0.5, values=[0.5, 3.0], resource=3.0)
    save_study(sqlite_url, "two", [trial], spec, directions=("minimize", "minimize"))
    told = answered(sqlite_url, "two")
    assert told.startswith("1 trial is the best trade-off between loss and size, from 1 trial\n")
    for command in commands:
        assert command in told


Run = Callable[..., Any]


class Unforeseen(Bowl):
    """Losses whose end has nothing to do with what was before."""

    def measure(self, params: Any, seed: int, resource: float) -> Any:
        draw = np.random.default_rng(int(params["x"] * 2**52) + 1 + int(resource == 9))
        return {"loss": 100 / (1 + resource) + draw.normal()}


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Drives a study once, however many tests look at it; its database."""

    @functools.cache
    def database(curves: type[Bowl], trials: int, **more: Any) -> Path:
        path = tmp_path_factory.mktemp("driven") / "study.db"
        search = {"sampler": "random"}
        budget = {"trials": trials, "per_trial": {"epochs": 9}}
        spec = spec_with(search=search, budget=budget)
        drive(f"sqlite:///{path}", spec, curves(), **more)
        return path

    return database


@pytest.fixture
def study(sqlite_url: str, driven: Callable[..., Path]) -> Callable[..., None]:
    """Puts such a study into the test's own database."""

    def save(curves: type[Bowl], trials: int = 60, **more: Any) -> None:
        shutil.copy(driven(curves, trials, **more), sqlite_url.removeprefix("sqlite:///"))

    return save


def test_status_has_a_line_for_the_weakest_rung(run, study):
    study(Bowl)
    told = " ".join(run("status").out.split())  # long facts take several lines
    assert re.search(r"rungs weakest at [13] of 9 epochs: the standing predicts the end", told)
    assert "rank correlation 1.00 (" in told


def test_status_of_a_young_study_says_that_nothing_is_known(run, study):
    study(Bowl, stop_after=5)
    assert "weakest at 1 of 9 epochs: no trial trained to the end" in run("status").out


def test_status_as_json_has_the_numbers(run, study):
    study(Bowl)
    first, second = json.loads(run("status", "--format", "json").out)["rungs"]
    assert list(first) == [
        "level",
        "reached",
        "paused",
        "pruned",
        "finished",
        "correlation",
        "verdict",
    ]
    assert list(first["correlation"]) == ["value", "low", "high", "trials"]
    assert (first["level"], first["reached"], first["verdict"]) == (1.0, 60, "tells")
    assert second["level"] == 3.0


def test_best_warns_where_the_rungs_told_little(run, study):
    study(Unforeseen)
    said = run("best")
    told = r"it is not clear how well the rungs predicted the end|told little about the end"
    assert re.search(rf"({told}): rank correlation", said.err)
    assert "a higher first_rung, or pruner: none, trains trials further" in said.err
    (first,) = json.loads(run("best", "--format", "json").out)
    assert first["rung_verdict"] in ("unclear", "little")


def test_best_warns_where_too_few_trials_were_trained_in_full(run, study):
    study(Bowl, trials=3)
    said = run("best")
    assert "trained once: part of its value may be luck" in said.err
    assert "it is not known whether the rungs can be trusted: only " in said.err
    (first,) = json.loads(run("best", "--format", "json").out)
    assert first["rung_verdict"] == "unknown"


def test_best_says_nothing_of_rungs_that_can_be_trusted(run, study):
    study(Bowl)
    assert "rungs" not in run("best", "plain").err
    (first,) = json.loads(run("best", "--format", "json").out)
    assert first["rung_verdict"] == "tells"


def test_status_prints_what_the_search_believes_for_programs(run, study):
    study(Bowl)
    found = json.loads(run("status", "--beliefs").out)
    assert found["study"] == "plain"
    assert sum(part["tried"] for part in found["parameters"]["x"]["parts"]) == 60
    assert found["new"][0]["expected"] < found["new"][-1]["expected"]
    assert "leave out --watch or --beliefs" in run("status", "--beliefs", "--watch").err


Run, Save = Callable[..., Any], Callable[..., None]
SPEC = """
study: flowers
task: {kind: tests_own.module:train}
space: {lr: {type: float, low: 0.0, high: 1.0}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 9}}
"""


def complete(number: int, value: float, **more: Any) -> Trial:
    params = {"lr": number / 10}
    return Trial(number, State.COMPLETE, params, value=value, resource=9.0, **more)


def test_best_says_what_another_hour_would_bring_where_that_was_foretold(run, save):
    told = asdict(NextHour("hour", 0.00123, 0.06, 0.005, trials=40))
    save("flowers", [complete(0, 0.9)], SPEC, system_attrs={NEXT_HOUR: told})
    said = "another hour: +0.0012 expected, 6% chance of more than +0.005"
    assert said in run("best", "flowers").err
    assert said not in run("best", "flowers", "--format", "json").err


def test_what_cannot_be_trained_to_its_end_is_refused(run, save):
    repeat = complete(2, 0.9, role=Role.CONFIRM, repeats=0)
    repeat.state = State.PRUNED
    failed = Trial(1, State.FAILED, {"lr": 0.1}, error_text="it broke")
    save("flowers", [complete(0, 0.9), failed, repeat], SPEC)
    for number, why in (
        ("7", "study flowers has no trial 7\n  it has trials 0 to 2"),
        ("0", "trial 0 of flowers is complete already"),
        ("1", "trial 1 of flowers failed"),
        ("2", "trial 2 of flowers repeats trial 0"),
    ):
        said = run("resume", "flowers", "--finish", number)
        assert (said.code, why in said.err) == (2, True), said.err
    assert run("resume", "flowers", "--finish", "-1").code == 2
    assert run("resume", "flowers", "--finish", "one").code == 2
