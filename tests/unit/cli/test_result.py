"""The result that `run` prints when a study has ended."""

from __future__ import annotations

import io
from contextlib import closing, redirect_stdout

import pytest

from hpsearch.cli.results.best import print_result
from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.store.store import Store
from support.studies.reported import save as save_study


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


def test_a_best_that_was_trained_once_may_be_luck_and_is_compared_with_the_defaults(
    save, sqlite_url
):
    default = Trial(0, State.COMPLETE, {"lr": 0.5}, value=0.7, resource=3.0, role=Role.DEFAULT)
    save("garden", [default, Trial(1, State.COMPLETE, {"lr": 0.1}, value=0.9, resource=3.0)])
    told = answered(sqlite_url, "garden")
    assert "part of its value may be luck" in told
    assert "0.2 better than the default settings' 0.7 (trial 0)" in told


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
