"""The result of a study in sentences, and its requests."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest
from rich.console import Console

from hpsearch.domain.facts import DecisionKind, RequestKind, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import CONSTRAINT, Decision, Request, StudyState, Trial
from hpsearch.search.ranking.selection import rank
from hpsearch.search.ranking.verdicts.certificate import Claim
from hpsearch.store.reading.best import LastWord
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.reading.status import BudgetLine, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.views.result import StudyResult
from hpsearch.views.terminal.status import MOST_REQUESTS, request_table
from hpsearch.views.words import (
    answer_in_words,
    gain,
    how_sure,
    last_word,
    latest,
    opening,
    request_in_words,
    rivals,
    worth,
)

OVER = StudyState.FINISHED


def result_of(
    *trials: Trial, directions: tuple[str, ...] = ("maximize",), state: StudyState = OVER
) -> StudyResult:
    head = StudyHead(1, "s", "", directions, state, None, 0, 1, 1, None, False, None)
    default = next((trial for trial in trials if trial.role is Role.DEFAULT), None)
    metrics = ["accuracy", "size"][: len(directions)]
    ranked = cast(Any, rank(trials, directions[0]))
    if len(metrics) > 1:  # a front has no order
        ranked = [replace(only, again=None) for each in trials for only in rank([each], "maximize")]
    return StudyResult(head, metrics, ranked, {}, cast(Any, default), StudyTrust())


def gain_of(*trials: Trial, direction: str = "maximize") -> str:
    sentence = gain(result_of(*trials, directions=(direction,)))
    assert sentence is not None
    return sentence


def trial(
    number: int,
    value: float | None,
    role: Role = Role.SEARCH,
    repeats: int | None = None,
    state: State = State.COMPLETE,
    **more: Any,
) -> Trial:
    return Trial(number, state, {}, value=value, resource=3.0, role=role, repeats=repeats, **more)


@pytest.mark.parametrize(("direction", "better"), [("maximize", 0.9), ("minimize", 0.7)])
def test_a_gain_is_measured_from_the_default_settings(direction, better):
    sentence = gain_of(trial(0, 0.8, Role.DEFAULT), trial(1, better), direction=direction)
    assert sentence == "0.1 better than the default settings' 0.8 (trial 0)"


def test_a_confirmed_gain_is_that_of_the_mean_and_no_luck():
    repeats = [trial(2, 0.84, Role.CONFIRM, 1), trial(3, 0.86, Role.CONFIRM, 1)]
    result = result_of(trial(0, 0.8, Role.DEFAULT), trial(1, 0.9), *repeats)
    assert result.best is not None
    assert worth(result.best).startswith("0.85 if trained again, 90% of the time between ")
    sentences = how_sure(result)
    assert sentences[0].endswith("the luck of the search is not in this value")
    assert "0.05 better than the default settings' 0.8 (trial 0)" in sentences


def test_a_gain_is_that_of_what_is_expected_where_that_is_known():
    default, best = trial(0, 0.8, Role.DEFAULT), trial(1, 0.95)
    default.expected, default.expected_deviation = 0.75, 0.0
    best.expected, best.expected_deviation = 0.85, 0.02
    result = result_of(default, best)
    assert result.best is not None
    assert worth(result.best) == "0.85", "two trials do not tell how far seeds move it"
    assert gain_of(default, best) == "0.1 better than the default settings' 0.75 (trial 0)"


def test_where_no_trial_is_better_than_the_default_settings_that_is_said():
    sentence = gain_of(trial(3, 0.8, Role.DEFAULT), trial(4, 0.7))
    assert sentence == "no trial is better than the default settings' 0.8 (trial 3)"
    repeats = [trial(2, 0.7, Role.CONFIRM, 1), trial(3, 0.72, Role.CONFIRM, 1)]
    assert "not better than" in gain_of(trial(1, 0.9), *repeats, trial(0, 0.8, Role.DEFAULT))
    assert gain(result_of(trial(0, 0.8), trial(1, 0.9))) is None


def test_trials_that_cannot_be_told_from_the_best_are_named_up_to_five():
    result = result_of(*(trial(number, 0.9) for number in range(8)))
    assert rivals(result) == "too close to call: trials 1, 2, 3, 4, 5 and 2 more"
    assert how_sure(result)[0].startswith("trained once: part of its value may be luck")


@pytest.mark.parametrize(
    ("run", "says_so"), [("t --lr {lr}", True), ("t --lr {lr} --seed {seed}", False)]
)
def test_a_command_without_its_seed_is_named_beside_how_sure_the_result_is(run, says_so):
    result = result_of(trial(1, 0.9))
    content = json.dumps({"task": {"kind": "command", "run": run}})
    result = replace(result, study=replace(result.study, spec=content))
    assert ("the command has no {seed}" in how_sure(result)[0]) == says_so


def said(*trials: Trial, seconds: float = 14.0, **more: Any) -> str:
    """The sentence that opens the result of a study with these trials."""
    result = result_of(*trials, **more)
    searched = sum(trial.role is not Role.CONFIRM for trial in trials)
    budget = [BudgetLine("trials", searched, None), BudgetLine("wall_clock_seconds", seconds, None)]
    counts = Counter(trial.state for trial in trials)
    return "".join(opening(result, StudySummary(result.study, counts, 0.0, None, budget)))


DEFAULT = trial(0, 0.94, Role.DEFAULT)


def test_it_says_how_good_how_much_better_from_what_and_how_often_trained_with_repeats_apart():
    assert said(DEFAULT, trial(1, 0.97)) == (
        "accuracy 0.97, 0.03 better than the defaults, from 2 trials in 14 s; trained once"
    )
    repeats = [trial(n, 0.95 + n / 100, Role.CONFIRM, repeats=1) for n in (2, 3)]
    assert said(DEFAULT, trial(1, 0.99), *repeats) == (
        "accuracy 0.975, 0.035 better than the defaults, from 2 trials in 14 s; mean of 2 trainings"
    )
    assert said(trial(1, 0.99), repeats[0]).endswith("; trained again once")


def test_a_value_that_no_training_has_shown_is_said_to_be_expected():
    lucky = [trial(n, value) for n, value in enumerate([0.5, 0.6, 0.7, 0.8, 0.95])]
    sentence = said(*lucky)
    assert " if trained again, from 5 trials in 14 s; trained once" in sentence
    assert not sentence.startswith("accuracy 0.95 ")
    paused = trial(1, 0.8, state=State.PAUSED, expected=0.9, expected_deviation=0.01)
    assert said(paused) == "accuracy 0.9 if trained to the end, from 1 trial in 14 s"


def test_a_gain_is_never_invented_a_time_not_known_is_left_out_and_an_end_to_come_is_so_far():
    assert said(trial(0, 0.9)) == "accuracy 0.9, from 1 trial in 14 s; trained once"
    assert " with the defaults, which no trial beats, " in said(DEFAULT, trial(1, 0.9))
    repeats = [trial(2, 0.9, Role.CONFIRM, repeats=1), trial(3, 0.91, Role.CONFIRM, repeats=1)]
    assert ", not better than the defaults, " in said(trial(1, 0.99), *repeats, DEFAULT)
    sentence = said(trial(0, 0.9), state=StudyState.INTERRUPTED)
    assert sentence == "accuracy 0.9, from 1 trial in 14 s so far; trained once"
    assert said(trial(0, 0.9), seconds=0.0) == "accuracy 0.9, from 1 trial; trained once"


def test_a_best_that_breaks_the_limits_says_so_and_several_objectives_have_trade_offs():
    assert "accuracy 0.9, 5.0% over the limits, which no trial keeps, from" in said(
        trial(0, 0.9, system_attrs={f"{CONSTRAINT}size": 0.05})
    )
    several = ("maximize", "minimize")
    assert said(trial(0, 0.9), trial(1, 0.8), directions=several) == (
        "the 2 best trade-offs between accuracy and size, from 2 trials in 14 s"
    )
    assert said(trial(0, 0.9), directions=several).startswith("1 trial is the best trade-off ")


@pytest.mark.parametrize(
    ("trials", "state", "sentence"),
    [
        ([], StudyState.RUNNING, "no result yet: no trial has started"),
        ([trial(0, None, state=State.FAILED)], OVER, "no result: the only trial failed"),
        ([trial(n, None, state=State.FAILED) for n in (0, 1)], OVER, "no result: all 2 trials f"),
        ([trial(0, None, state=State.PAUSED)], OVER, "no result: its trial has no value"),
    ],
)
def test_without_a_result_it_says_why(trials, state, sentence):
    assert said(*trials, state=state).startswith(sentence)


PROPOSE, BUDGET = RequestKind.PROPOSE, RequestKind.BUDGET


def request(kind: RequestKind, content: Any, **answer: Any) -> Request:
    return Request(1, kind, content, "ann@desk", created=5.0, **answer)


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        (RequestKind.STOP, {"trial": 3}, "stop trial 3"),
        (RequestKind.INTERRUPT, {}, "stop the study"),
        (BUDGET, {"trials": 80, "wall_clock": "4h"}, "raise trials to 80, wall_clock to 4h"),
        (PROPOSE, {"params": {"x": 0.5}, "why": "it was good"}, "try x=0.5 (it was good)"),
        (PROPOSE, {"params": None}, "try a configuration"),
        (PROPOSE, {}, "try a configuration"),
    ],
)
def test_what_is_asked_is_said_in_words(kind, content, said):
    assert request_in_words(request(kind, content)) == said


def test_the_answer_is_said_in_words():
    assert answer_in_words(request(BUDGET, {})) == "waits for the driver"
    assert answer_in_words(request(BUDGET, {}, handled=6.0)) == "done"
    assert answer_in_words(request(PROPOSE, {}, handled=6.0, trial=9)) == "trial 9"
    assert (
        answer_in_words(request(BUDGET, {}, handled=6.0, refused="too low")) == "refused: too low"
    )


def test_decisions_of_the_study_stand_among_those_of_its_trials():
    decisions = [Decision(3, DecisionKind.PAUSE, "others are ahead", created=at) for at in (1, 9)]
    requests = [
        request(BUDGET, {"trials": 80}, handled=5.0),
        request(BUDGET, {"trials": 90}),
        request(PROPOSE, {"params": {"x": 1}}, handled=6.0, trial=9),
        request(PROPOSE, {"params": {"x": 2}}, handled=7.0, refused="no"),
    ]
    assert latest(decisions, requests) == [
        "trial 3 pause: others are ahead",
        "ann@desk asked to raise trials to 80: done",
        "ann@desk asked to try x=2: refused: no",
        "trial 3 pause: others are ahead",
    ]


def test_the_table_has_the_latest_and_says_how_many_came_before():
    requests = [request(BUDGET, {"trials": 10 + n}, handled=6.0) for n in range(MOST_REQUESTS + 2)]
    console = Console(file=io.StringIO(), width=200)
    console.print(request_table(requests, None))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "asked while it ran (and 2 before)" in said
    assert "raise trials to 11" not in said
    assert "raise trials to 16" in said


def compared(*differences: float, of_samples: float = 0.0, failed: int = 0) -> LastWord:
    samples = 200 if of_samples else 0
    found = Claim(1, differences, samples, failed, level=0.96, of_samples=of_samples)
    return LastWord(0.95, found, repeat_s=90.0)


SURE = (0.02, 0.021, 0.023, 0.019, 0.022, 0.02)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            compared(*SURE),
            "better than the defaults by 0.02083 (at least 0.01831 with 95%); the luck of 6 pairs "
            "of trainings counts, that of the validation samples is not known",
        ),
        (
            compared(*SURE, of_samples=0.01),
            "better than the defaults by 0.02083 (at least 0.008307 with 95%); the luck of 6 pairs "
            "of trainings counts, and of 200 validation samples",
        ),
        (
            compared(*SURE, of_samples=0.03),
            "not shown to be better: use the defaults; trial 1 is 0.02083 better, where the luck "
            "of 6 pairs of trainings counts, and of 200 validation samples: about 1,659 samples "
            "may decide it",
        ),
        (
            compared(0.03, 0.0, 0.02),
            "not shown to be better: use the defaults; trial 1 is 0.01667 better, where the luck "
            "of 3 pairs of trainings counts, that of the validation samples is not known: 6 more "
            "pairs, 18 min of compute time, may decide it",
        ),
        (
            compared(-0.03, 0.0, -0.02),
            "not shown to be better: use the defaults; trial 1 is not better, where the luck of 3 "
            "pairs of trainings counts, that of the validation samples is not known: no more pairs "
            "are expected to decide it",
        ),
        (
            compared(*SURE, failed=1),
            "not shown to be better: use the defaults; 1 repeat of trial 1 or of them failed",
        ),
        (
            compared(),
            "not shown to be better: use the defaults; trial 1 is being compared with them",
        ),
        (
            LastWord(0.95),
            "not shown to be better: use the defaults; no trial that leads them has been compared "
            "with them",
        ),
    ],
)
def test_the_last_word_is_one_of_two_with_what_counts_or_what_more_would_decide_it(word, said):
    plain = result_of(trial(0, 0.8, Role.DEFAULT), trial(1, 0.9))
    result = replace(plain, last_word=word)
    assert last_word(result) == said
    assert said in how_sure(result)
    assert gain(plain) in how_sure(plain)
    assert last_word(plain) is None
    begins = f", {said.partition(';')[0]}, from "
    budget = [BudgetLine("trials", 2, None), BudgetLine("wall_clock_seconds", 14.0, None)]
    counted = StudySummary(result.study, Counter({State.COMPLETE: 2}), 0.0, None, budget)
    assert begins in "".join(opening(result, counted))


def test_the_trial_that_was_shown_to_be_better_is_named_where_another_one_is_the_best():
    result = result_of(trial(0, 0.8, Role.DEFAULT), trial(1, 0.9), trial(2, 0.95))
    said = last_word(replace(result, last_word=compared(*SURE)))
    assert said is not None
    assert said.startswith("trial 1 is better than the defaults by 0.02083 (at least ")
