"""What a study gained, in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.ranking.selection import rank
from hpsearch.words.answer import gain


def told(*trials: Trial, direction: str = "maximize") -> Any:
    default = next((trial for trial in trials if trial.role is Role.DEFAULT), None)
    return gain(rank(trials, direction)[0], default, "accuracy", direction)  # type: ignore[arg-type]


def trial(number: int, value: float, role: Role = Role.SEARCH, repeats: int | None = None) -> Trial:
    return Trial(number, State.COMPLETE, {}, value=value, resource=3.0, role=role, repeats=repeats)


@pytest.mark.parametrize(("direction", "better"), [("maximize", 0.9), ("minimize", 0.7)])
def test_a_gain_is_told_against_the_default_settings(direction: str, better: float) -> None:
    sentence = told(trial(0, 0.8, Role.DEFAULT), trial(1, better), direction=direction)
    assert sentence.startswith(
        f"accuracy {better}, 0.1 better than the default settings' 0.8 (trial 0)"
    )
    assert "luck" in sentence


def test_a_confirmed_gain_is_that_of_the_mean_and_no_luck() -> None:
    repeats = [trial(2, 0.84, Role.CONFIRM, 1), trial(3, 0.86, Role.CONFIRM, 1)]
    sentence = told(trial(0, 0.8, Role.DEFAULT), trial(1, 0.9), *repeats)
    assert sentence.startswith("accuracy 0.85 ± ")
    assert "0.05 better than the default settings' 0.8 (trial 0)" in sentence
    assert "luck" not in sentence


def test_a_gain_is_that_of_what_is_expected_where_that_is_known() -> None:
    default, best = trial(0, 0.8, Role.DEFAULT), trial(1, 0.95)
    default.expected, default.expected_deviation = 0.75, 0.0
    best.expected, best.expected_deviation = 0.85, 0.02
    sentence = told(default, best)
    assert sentence.startswith(
        "accuracy 0.85 ± 0.033 expected in full, 0.1 better than the default settings' 0.75 (trial"
    )


def test_where_the_default_settings_are_best_that_is_said() -> None:
    assert told(trial(0, 0.8, Role.DEFAULT), trial(1, 0.7)) == (
        "no trial is better than the default settings: accuracy 0.8 (trial 0)"
    )


def test_a_confirmed_trial_that_is_no_better_is_told_so() -> None:
    repeats = [trial(2, 0.7, Role.CONFIRM, 1), trial(3, 0.72, Role.CONFIRM, 1)]
    confirmed = told(trial(1, 0.9), *repeats, trial(0, 0.8, Role.DEFAULT))
    assert "not better than" in confirmed


def test_without_defaults_there_is_nothing_to_tell() -> None:
    assert told(trial(0, 0.8), trial(1, 0.9)) is None
