"""What `hpsearch train` refuses before it trains anything."""

from __future__ import annotations

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial

OWN = """
study: own
task: {kind: "own_code:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 3}}
"""


def test_an_unknown_study_is_named(run, flowers):
    said = run("train", "flower")
    assert said.code == 2
    assert "did you mean flowers?" in said.err


def test_a_study_without_a_value_has_nothing_to_train(run, save):
    save("young", [Trial(0, State.RUNNING, {"lr": 0.1})])
    said = run("train", "young")
    assert said.code == 2
    assert "no trial of young has a value yet" in said.err


def test_a_searched_function_is_trained_by_its_own_program(run, save):
    save("own", [Trial(0, State.COMPLETE, {"x": 0.1}, value=0.5)], OWN)
    said = run("train", "own")
    assert said.code == 2
    assert "python -m trials winner.yaml" in said.err
