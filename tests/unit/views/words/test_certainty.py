"""The gain of a study, in a sentence."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.search.ranking.selection import rank
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.views.result.study_result import StudyResult
from hpsearch.views.words.certainty import gain, how_sure, rivals, worth


def result_of(*trials: Trial, direction: str = "maximize") -> StudyResult:
    head = StudyHead(
        1, "s", "", (direction,), StudyState.FINISHED, None, 0, 1, 1, None, False, None
    )
    default = next((trial for trial in trials if trial.role is Role.DEFAULT), None)
    ranked = cast(Any, rank(trials, direction))
    objectives = [("accuracy", direction)]
    return StudyResult(head, objectives, ranked, {}, cast(Any, default), StudyTrust())


def gain_of(*trials: Trial, direction: str = "maximize") -> str:
    sentence = gain(result_of(*trials, direction=direction))
    assert sentence is not None
    return sentence


def trial(number: int, value: float, role: Role = Role.SEARCH, repeats: int | None = None) -> Trial:
    return Trial(number, State.COMPLETE, {}, value=value, resource=3.0, role=role, repeats=repeats)


@pytest.mark.parametrize(("direction", "better"), [("maximize", 0.9), ("minimize", 0.7)])
def test_a_gain_is_measured_from_the_default_settings(direction: str, better: float) -> None:
    sentence = gain_of(trial(0, 0.8, Role.DEFAULT), trial(1, better), direction=direction)
    assert sentence == "0.1 better than the default settings' 0.8 (trial 0)"


def test_a_confirmed_gain_is_that_of_the_mean_and_no_luck() -> None:
    repeats = [trial(2, 0.84, Role.CONFIRM, 1), trial(3, 0.86, Role.CONFIRM, 1)]
    result = result_of(trial(0, 0.8, Role.DEFAULT), trial(1, 0.9), *repeats)
    assert result.best is not None
    assert worth(result.best).startswith("0.85 if trained again, 90% of the time between ")
    sentences = how_sure(result)
    assert sentences[0].endswith("the luck of the search is not in this value")
    assert "0.05 better than the default settings' 0.8 (trial 0)" in sentences


def test_a_gain_is_that_of_what_is_expected_where_that_is_known() -> None:
    default, best = trial(0, 0.8, Role.DEFAULT), trial(1, 0.95)
    default.expected, default.expected_deviation = 0.75, 0.0
    best.expected, best.expected_deviation = 0.85, 0.02
    result = result_of(default, best)
    assert result.best is not None
    assert worth(result.best) == "0.85", "two trials do not tell how far seeds move it"
    assert gain_of(default, best) == "0.1 better than the default settings' 0.75 (trial 0)"


def test_where_the_default_settings_are_best_that_is_said() -> None:
    sentence = gain_of(trial(3, 0.8, Role.DEFAULT), trial(4, 0.7))
    assert sentence == "no trial is better than the default settings' 0.8 (trial 3)"


def test_a_confirmed_trial_that_is_no_better_is_said_to_be_so() -> None:
    repeats = [trial(2, 0.7, Role.CONFIRM, 1), trial(3, 0.72, Role.CONFIRM, 1)]
    assert "not better than" in gain_of(trial(1, 0.9), *repeats, trial(0, 0.8, Role.DEFAULT))


def test_without_defaults_there_is_no_gain() -> None:
    assert gain(result_of(trial(0, 0.8), trial(1, 0.9))) is None


def test_trials_that_cannot_be_told_from_the_best_are_named_up_to_five() -> None:
    result = result_of(*(trial(number, 0.9) for number in range(8)))
    assert rivals(result) == "too close to call: trials 1, 2, 3, 4, 5 and 2 more"
    assert how_sure(result)[0].startswith("trained once: part of its value may be luck")
