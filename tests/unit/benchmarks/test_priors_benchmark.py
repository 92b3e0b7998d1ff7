"""The benchmark of priors and earlier studies: what its studies know, and how gains are counted."""

from typing import Any

import numpy as np
import pytest

from hpsearch.domain.facts import EarlierStudy, EarlierTrial

TOLD = EarlierStudy("before", [EarlierTrial({"x": n}, n / 4) for n in range(20)])


@pytest.fixture
def priors(bench: Any) -> Any:
    return bench("priors")


@pytest.fixture
def terms(priors: Any) -> Any:
    return priors.Terms(tasks=None, data=None, trials=2, workers=2, sources=3)


def study(priors: Any, case: str, seed: int = 0) -> Any:
    return priors.Study("recorded", "images", seed, case)


@pytest.mark.parametrize("seed", range(5))
def test_a_good_prior_is_a_good_configuration_and_a_misleading_one_a_bad_one(priors, terms, seed):
    configurations, losses = priors._known(terms, "recorded", "images")
    shares = {}
    for belief in priors.BELIEFS:
        values = priors.believed(terms, study(priors, f"{belief} high", seed))
        shares[belief] = np.mean(losses < losses[configurations.index(values)])
    assert shares["good"] < 0.3
    assert shares["misleading"] >= 0.7


def test_every_parameter_of_the_study_has_the_prior(priors, terms):
    values = priors.believed(terms, study(priors, "good high"))
    task = priors.Believed(priors._tasks(terms, "recorded")["images"], values, "high")
    assert {name: part["prior"] for name, part in task.space.items()} == values
    assert {part["confidence"] for part in task.space.values()} == {"high"}


def test_a_study_of_few_trials_is_run_and_judged_at_every_mark(priors, terms):
    regrets = priors.run(study(priors, "good medium"), terms, {})
    assert len(regrets) == len(priors.MARKS)
    assert all(0 <= regret <= 1 for regret in regrets)


def test_gains_are_over_the_same_task_and_seed_without_knowledge(priors):
    cases = [priors.NOTHING, "good high", "reversed"]
    results = {}
    for case, regrets in zip(cases, [[0.5, 0.4], [0.25, 0.4], [0.5, 0.65]], strict=True):
        for seed, regret in enumerate(regrets):
            results[study(priors, case, seed)] = [regret] * len(priors.MARKS)
    nothing, good, backwards = priors.rows_of(results, cases)
    assert nothing["gain_10%"] == 0
    assert good["gain_10%"] == pytest.approx(0.125)
    assert good["error_10%"] == pytest.approx(0.125)
    assert backwards["20%"] == pytest.approx(0.575)


def test_unrelated_studies_have_the_same_configurations_and_standings(priors):
    rng = np.random.default_rng(0)
    same = priors._changed(TOLD, "all", rng)
    scrambled = priors._changed(TOLD, "scrambled", rng)
    backwards = priors._changed(TOLD, "reversed", rng)
    assert same == TOLD
    assert [trial.params["x"] for trial in backwards.trials] == list(range(19, -1, -1))
    found = [trial.params["x"] for trial in scrambled.trials]
    assert found != sorted(found)
    assert sorted(found) == list(range(20))
    for each in (scrambled, backwards):
        assert [trial.standing for trial in each.trials] == [n / 4 for n in range(20)]


@pytest.mark.thorough
def test_a_study_learns_nothing_of_its_own_task(priors, terms):
    sources = {}
    for name in priors._tasks(terms, "recorded"):
        sources["recorded", name, 0] = priors.finished(("recorded", name, 0), terms)
    for case, most in ((priors.NOTHING, 0), ("one", 1), ("all", 3)):
        told = priors.told(terms, study(priors, case), sources)
        assert "images" not in [each.name for each in told]
        assert len(told) <= most
        assert all(set(trial.params) for each in told for trial in each.trials)
