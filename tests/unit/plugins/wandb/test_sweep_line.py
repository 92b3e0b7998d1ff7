"""The command lines of W&B sweeps."""

import pytest

from hpsearch.plugins.wandb.sweep_line import SweepLine
from trials.contract import TaskError
from trials.descriptions.command import COMMAND

CONFIG = {"lr": 1e-05, "wide": True, "deep": False, "model": {"depth": 2}}
PLAIN = ["lr=1e-05", "wide=True", "deep=False", "model={'depth': 2}"]
JSON = '{"lr": 1e-05, "wide": true, "deep": false, "model": {"depth": 2}}'


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    ("macro", "words"),
    [
        ("args", [f"--{each}" for each in PLAIN]),
        ("args_no_hyphens", PLAIN),
        ("args_no_boolean_flags", ["--lr=1e-05", "--wide", "--model={'depth': 2}"]),
        ("args_append_hydra", [f"+{each}" for each in PLAIN]),
        ("args_json_file", ["/there/config.json"]),
        ("args_json", [JSON]),
    ],
)
def test_a_macro_is_the_words_that_w_and_b_makes_of_the_config(macro, words):
    line = SweepLine(f"python train.py ${{{macro}}} --end")
    assert line.expanded({}, CONFIG, "/there/config.json") == [
        *("python", "train.py", *words, "--end")
    ]


def test_each_parameter_may_be_two_words():
    line = SweepLine("a ${args_no_equals}")
    assert line.expanded({}, {"lr": 0.1}, "") == ["a", "--lr", "0.1"]


def test_placeholders_and_variables_are_filled_in_too(monkeypatch):
    monkeypatch.setenv("DATA", "/the data")
    monkeypatch.delenv("NOWHERE", raising=False)
    line = SweepLine("a --in=${envvar:DATA}/x ${envvar:NOWHERE} --out {folder} 'sh ${{args}}'")
    assert line.names == {"folder"}
    words = line.expanded({"folder": "/out"}, CONFIG, "")
    assert words == ["a", "--in=/the data/x", "NOWHERE", "--out", "/out", "sh ${args}"]


@pytest.mark.parametrize(
    ("changes", "where", "what"),
    [
        ({"run": "a ${argz}"}, "task.run", "${argz} is not a macro of W&B"),
        ({"report": "{resource} {loss}"}, "task.report", "which takes the reports"),
        ({"ends_early": True}, "task.ends_early", "which takes the reports"),
        ({"library": "wandbe"}, "task.library", "did you mean wandb?"),
        ({"library": None, "config": {}}, "task.config", "add library, or use settings"),
    ],
)
def test_what_does_not_go_with_a_sweep_is_refused(changes, where, what):
    task = {"kind": "command", "library": "wandb", "run": "a", **changes}
    task = {name: value for name, value in task.items() if value is not None}
    (problem,) = COMMAND.problems_with(task)
    assert problem.where == where
    assert what in problem.what


def test_a_parameter_needs_no_placeholder_and_is_stated_once():
    task = {"kind": "command", "library": "wandb", "run": "a", "config": {"b": {"c": 1}}}
    assert COMMAND.problems_with_names(task, {}, {"lr": True, "folder": True}) == []
    (problem,) = COMMAND.problems_with_names(task, {}, {"b.c": True})
    assert problem.what.startswith("b.c is a parameter, too")
    with pytest.raises(TaskError):
        SweepLine("a {")
