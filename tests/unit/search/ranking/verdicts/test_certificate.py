"""Pairs of repeats beside each other: what they show, and what samples may explain."""

import math

import numpy as np
import pytest

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.verdicts.certificate import Certificate, defaults_among
from trials.running.reported import note_of_samples


def repeat(number, repeats, seed, value, samples=None, state=State.COMPLETE):
    trial = Trial(number, state, {}, value=value, role=Role.CONFIRM, repeats=repeats, seed=seed)
    if samples is not None:
        trial.system_attrs = dict(note_of_samples(samples).kept)
    return trial


def accuracies(trials, tried=1, level=0.95):
    return Certificate(trials, 0, -1.0, level, tried)


def paired(candidate, defaults, first=0):
    """Repeats of trial 1 and of the defaults with these rows of results, a seed each."""
    trials = []
    for seed, rows in enumerate(zip(candidate, defaults, strict=True)):
        for repeats, row in zip((1, 0), rows, strict=True):
            value = float(np.mean(row))
            trials.append(repeat(first + len(trials), repeats, seed, value, list(row)))
    return trials


def test_only_complete_pairs_on_the_same_seed_count():
    trials = [
        repeat(5, 1, seed=7, value=0.9),
        repeat(6, 0, seed=7, value=0.8),
        repeat(7, 1, seed=8, value=0.95),
        repeat(8, 0, seed=9, value=0.1),
        repeat(9, 1, seed=10, value=0.9),
        repeat(10, 0, seed=10, value=None, state=State.RUNNING),
    ]
    found = accuracies(trials)
    assert found.comparison(1).differences == [pytest.approx(0.1)]
    assert found.unpaired(1) == [8]
    assert found.begun(1) == 3


def test_pairs_of_which_the_code_changed_in_between_do_not_count():
    trials = [repeat(5, 1, seed=7, value=0.9), repeat(6, 0, seed=7, value=0.8)]
    trials[1].version = 2
    assert accuracies(trials).comparison(1).differences == []
    assert accuracies(trials).unpaired(1) == []


def test_a_few_samples_may_explain_what_many_seeds_agree_on():
    place, jitter = np.arange(100), np.random.default_rng(0).random((10, 100)) < 0.005
    defaults = np.tile((place < 10) | (place >= 25), (10, 1))
    candidate = np.tile(place >= 10, (10, 1)) ^ jitter
    word = accuracies(paired(candidate, defaults), tried=16).last_word()
    assert word is not None
    assert word.samples == 100
    assert word.gain > 0
    assert not word.is_shown
    assert word.samples_needed > 100
    without = accuracies(
        [repeat(t.number, t.repeats, t.seed, t.value) for t in paired(candidate, defaults)]
    )
    assert without.last_word().is_shown, "seeds alone know nothing of that"


def test_the_more_trials_a_winner_is_the_best_of_the_more_samples_may_explain():
    draw = np.random.default_rng(1)
    trials = paired(draw.random((3, 300)) < 0.9, draw.random((3, 300)) < 0.8)
    explained = [accuracies(trials, tried).comparison(1).of_samples for tried in (1, 16, 200)]
    assert explained == sorted(explained)
    assert explained[0] < explained[-1]


def test_the_luckiest_of_16_equal_configurations_on_200_samples_is_hardly_ever_called_better():
    """Each configuration has samples of its own that it answers wrong, nearly the same ones with
    every seed; none has more of them than another on all the samples that there are."""
    draw, wrong, alone = np.random.default_rng(0), 0, 0
    for _ in range(200):
        knows = draw.random((17, 1, 200)) < 0.85
        results = knows ^ (draw.random((17, 11, 200)) < 0.02)
        best = 1 + int(results[1:, 0].mean(axis=1).argmax())
        trials = paired(results[best, 1:], results[0, 1:])
        wrong += accuracies(trials, tried=16).comparison(1).is_shown
        plain = [repeat(t.number, t.repeats, t.seed, t.value) for t in trials]
        alone += accuracies(plain).comparison(1).is_shown
    assert wrong / 200 <= 0.05
    assert alone > 2 * max(wrong, 5), "without results by sample only seeds count"


def test_the_last_word_is_of_what_is_shown_and_else_of_the_latest_candidate():
    clear = [
        repeat(2 * n + i, repeats, n, value + n / 1e4)
        for n in range(6)
        for i, (repeats, value) in enumerate([(1, 0.9), (0, 0.8 + n / 1e3)])
    ]
    later = [repeat(20, 2, 50, 0.7), repeat(21, 0, 50, 0.8)]
    found = accuracies([*clear, *later])
    assert found.candidates == [1, 2]
    assert found.comparison(2).level == pytest.approx(1 - 0.05 * 4 / 25)
    assert found.last_word().candidate == 1
    assert accuracies([*later]).last_word().candidate == 2
    assert accuracies([]).last_word() is None


def test_without_pairs_nothing_is_known():
    comparison = accuracies([]).comparison(3)
    assert math.isnan(comparison.gain)
    assert comparison.least == -math.inf
    assert comparison.more == 3
    assert not comparison.is_shown


def test_the_first_that_was_asked_for_stands_for_the_defaults_where_a_task_has_none():
    asked = Trial(3, State.COMPLETE, {}, role=Role.ENQUEUED)
    drawn = Trial(1, State.COMPLETE, {}, role=Role.SEARCH)
    default = Trial(4, State.COMPLETE, {}, role=Role.DEFAULT)
    assert defaults_among([drawn, asked, default]) is default
    assert defaults_among([drawn, asked]) is asked
    assert defaults_among([drawn]) is None
