"""The benchmark of priors: what it believes, and how it counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def priors(bench: Any) -> Any:
    return bench("priors")


def study(priors: Any, belief: str, seed: int = 0) -> Any:
    return priors.Study("recorded", "images", seed, priors.Case(belief, "high"))


def terms(priors: Any) -> Any:
    return priors.Terms(tasks=None, data=None, trials=2, workers=2, sampler="curve_gp")


@pytest.mark.parametrize("seed", range(5))
def test_a_good_prior_is_a_good_configuration_and_a_misleading_one_a_bad_one(
    priors: Any, seed: int
) -> None:
    configurations, losses = priors._known(terms(priors), "recorded", "images")
    shares = {}
    for belief in priors.BELIEFS:
        values = priors.believed(terms(priors), study(priors, belief, seed))
        loss = losses[configurations.index(values)]
        shares[belief] = np.mean(losses < loss)
    assert shares["good"] < 0.3
    assert shares["misleading"] >= 0.7


def test_every_parameter_of_the_study_has_the_prior(priors: Any) -> None:
    one = study(priors, "good")
    values = priors.believed(terms(priors), one)
    task = priors.Believed(priors._task(terms(priors), "recorded", "images"), values, "high")
    assert {name: part["prior"] for name, part in task.space.items()} == values
    assert {part["confidence"] for part in task.space.values()} == {"high"}


def test_a_study_of_few_trials_is_run_and_judged_at_every_mark(priors: Any) -> None:
    regrets = priors.run(study(priors, "good"), terms(priors))
    assert len(regrets) == len(priors.MARKS)
    assert all(0 <= regret <= 1 for regret in regrets)


def test_gains_are_over_the_same_task_and_seed_without_priors(priors: Any) -> None:
    cases = [priors.NOTHING, priors.Case("good", "high"), priors.Case("misleading", "high")]
    regrets = [[0.5, 0.4], [0.25, 0.4], [0.5, 0.65]]
    results = {}
    for case, (first, second) in zip(cases, regrets, strict=True):
        for seed, regret in enumerate((first, second)):
            results[priors.Study("recorded", "images", seed, case)] = [regret] * len(priors.MARKS)
    nothing, good, misleading = priors.rows_of(results, cases)
    assert nothing["gain_10%"] == 0
    assert good["gain_10%"] == pytest.approx(0.125)
    assert good["error_10%"] == pytest.approx(0.125)
    assert misleading["20%"] == pytest.approx(0.575)
    verdicts = list(priors.verdicts([good, misleading]))
    assert "does not clearly help" in verdicts[0]
    assert "does no harm" in verdicts[1]
