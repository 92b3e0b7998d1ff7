"""Studies whose parameters have priors: they begin near them, and forget the wrong ones."""

from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.running import simulate
from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.errors import SpecError
from hpsearch.search.samplers.curve_gp import DESIGN
from support.studies.small import Bowl, brain, budget_of, history_for, search_by, spec_with

RATE = {"type": "float", "low": 1e-6, "high": 1.0, "log": True}
SHARE = {"type": "float", "low": 0.0, "high": 1.0}
WIDTH = {"type": "int", "low": 1, "high": 1000, "log": True}
KINDS = {"type": "categorical", "choices": ["adam", "sgd", None, 3]}
BEST = {"x": 0.3, "y": 0.8, "z": 0.55}
TRIALS = 40


class Valley(Bowl):
    """A bowl in three dimensions."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        distance = sum((params[name] - best) ** 2 for name, best in BEST.items())
        return {"loss": distance + 1 / (1 + resource)}


class Flat(Bowl):
    """Curves that say nothing of their configuration."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        return {"loss": 1 / (1 + resource)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource


def valley(prior: Mapping[str, float] | None, **changes: Any) -> Any:
    """A study of the valley in which all parameters have priors, with high confidence."""
    space = {name: dict(SHARE) for name in BEST}
    for name, value in (prior or {}).items():
        space[name].update(prior=value, confidence="high")
    return study(space, **changes)


def study(space: Mapping[str, Any], **changes: Any) -> Any:
    usual = {
        "space": dict(space),
        "search": {"sampler": "curve_gp"},
        "budget": budget_of(TRIALS, 27),
    }
    return spec_with(**{**usual, **changes})


def distance(params: Mapping[str, Any], place: Mapping[str, float]) -> float:
    return float(np.linalg.norm([params[name] - at for name, at in place.items()]))


def proposed(history: History) -> list[dict[str, Any]]:
    return [trial.params for trial in history.trials]


# -------------------------------------------------------------------------------- at the beginning


def test_the_first_proposal_is_what_is_believed():
    prior = {"x": 0.25, "y": 0.75, "z": 0.5}
    first, *_ = proposed(simulate(valley(prior), Valley(), 2))
    assert first == pytest.approx(prior)


def test_it_comes_after_the_defaults_and_what_was_asked_for():
    spec = valley({"x": 0.25, "y": 0.75, "z": 0.5}, enqueue=[{"x": 0.1, "y": 0.1, "z": 0.1}])
    history = simulate(spec, Valley(), 2)
    enqueued, first = history.trials[:2]
    assert (enqueued.role, first.role) == (Role.ENQUEUED, Role.SEARCH)
    assert first.params == pytest.approx({"x": 0.25, "y": 0.75, "z": 0.5})


@pytest.mark.thorough
def test_what_was_tried_already_is_not_proposed_again():
    prior = {"x": 0.25, "y": 0.75, "z": 0.5}
    enqueued, *others = proposed(simulate(valley(prior, enqueue=[prior]), Valley(), 2))
    assert enqueued == prior
    assert prior not in others


def test_what_an_enqueued_configuration_leaves_open_is_what_is_believed():
    spec = valley({"x": 0.25, "y": 0.75, "z": 0.5}, enqueue=[{"x": 0.9}])
    enqueued, *_ = proposed(simulate(spec, Valley(), 2))
    assert enqueued == pytest.approx({"x": 0.9, "y": 0.75, "z": 0.5})


@pytest.mark.thorough
def test_every_other_one_of_the_first_proposals_is_near_the_prior():
    prior = {"x": 0.1, "y": 0.1, "z": 0.9}
    near = []
    far = []
    for seed in range(5):
        first = proposed(simulate(valley(prior, seed=seed), Valley(), DESIGN))[:DESIGN]
        near += [distance(params, prior) for params in first[1::2]]
        far += [distance(params, prior) for params in first[2::2]]
    assert median(near) < 0.5 * median(far)


@pytest.mark.thorough
def test_a_parameter_without_a_prior_is_spread_evenly():
    space = {"x": {**SHARE, "prior": 0.9, "confidence": "high"}, "y": SHARE, "z": SHARE}
    plain = proposed(simulate(study({"x": SHARE, "y": SHARE, "z": SHARE}), Valley(), DESIGN))
    some = proposed(simulate(study(space), Valley(), DESIGN))
    assert some[0]["x"] == pytest.approx(0.9)
    for one, other in zip(plain[:DESIGN], some[:DESIGN], strict=True):
        assert (one["y"], one["z"]) == (other["y"], other["z"])


# ------------------------------------------------------------------------------------- later on


@pytest.mark.thorough
def test_a_good_prior_helps_and_a_wrong_one_is_forgotten():
    good = {"x": 0.38, "y": 0.72, "z": 0.47}
    wrong = {"x": 0.95, "y": 0.05, "z": 0.05}
    early: dict[str, list[float]] = {"none": [], "good": [], "wrong": []}
    late = []
    for seed in range(3):
        for name, prior in (("none", None), ("good", good), ("wrong", wrong)):
            found = proposed(simulate(valley(prior, seed=seed), Valley(), 2))
            away = [distance(params, BEST) for params in found]
            early[name] += away[DESIGN : 2 * DESIGN]
            if name == "wrong":
                late += away[-TRIALS // 4 :]
                assert min(away) < 0.25
    assert median(early["good"]) < 0.8 * median(early["none"])
    assert median(early["wrong"]) > median(early["none"]), "it is believed at first"
    assert median(late) < 0.5 * distance(wrong, BEST)


# --------------------------------------------------------------------------- the same from the same


@pytest.mark.thorough
@pytest.mark.parametrize("prior", [None, BEST])
def test_the_same_seed_proposes_the_same(prior):
    one, other, third = (
        proposed(simulate(valley(prior, seed=seed), Valley(), 2)) for seed in (5, 5, 6)
    )
    assert one == other
    assert one != third


@pytest.mark.parametrize(
    ("prior", "count"),
    [
        (None, 20),
        *(pytest.param(BEST, count, marks=pytest.mark.thorough) for count in (0, 1, 5, 20)),
    ],
)
def test_a_study_that_is_taken_up_again_proposes_what_it_would_have(prior, count):
    spec = valley(prior, search=search_by("curve_gp"))
    history = simulate(spec, Valley(), 1)
    again = history_for(spec)
    for trial in history.trials[:count]:
        again.add_trial(trial)
    for number in range(DESIGN, count):  # the model's fits are notes of the study: replay them
        partial = history_for(spec)
        partial.study = again.study
        for trial in history.trials[:number]:
            partial.add_trial(trial)
        brain(spec, partial)._context.searcher.proposals.propose(
            partial.add_trial(Trial(number, State.QUEUED, {}))
        )
    trial = again.add_trial(Trial(count, State.QUEUED, {}))
    brain(spec, again)._context.searcher.proposals.propose(trial)
    assert trial.params == history.trials[count].params


# ------------------------------------------------------------------------------ every kind of space


MIXED = {
    "optimizer": {**KINDS, "prior": None},
    "rate": {**RATE, "prior": 3e-4, "confidence": "high"},
    "width": {**WIDTH, "prior": 30, "confidence": "low"},
    "momentum": {**SHARE, "step": 0.25, "prior": 0.75, "when": {"optimizer": "sgd"}},
    "beta": {**SHARE, "prior": 0.1, "when": {"optimizer": ["adam", None]}},
    "one": {"type": "int", "low": 2, "high": 2, "prior": 2},
}


@pytest.mark.thorough
def test_conditions_and_categories_may_have_priors():
    found = proposed(simulate(study(MIXED), Flat(), 2))
    assert len(found) == TRIALS
    for params in found:
        assert ("momentum" in params) == (params["optimizer"] == "sgd")
        assert ("beta" in params) == (params["optimizer"] in ("adam", None))
    expected = {"optimizer": None, "rate": 3e-4, "width": 30, "beta": 0.1, "one": 2}
    assert found[0] == pytest.approx(expected)
    chosen = [params["optimizer"] for params in found]
    assert chosen.count(None) > TRIALS / 4
    assert {"adam", "sgd"} <= set(chosen)


@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "gp", "nsgaii", "nsgaiii", "qmc", "random"])
def test_samplers_that_ignore_priors_are_refused(sampler):
    with pytest.raises(SpecError, match=f"{sampler} does not take priors into account; use curve"):
        valley(BEST, search={"sampler": sampler})


def test_several_objectives_know_no_priors():
    objectives = [{"metric": name, "direction": "minimize"} for name in ("loss", "size")]
    with pytest.raises(SpecError, match="tpe does not take priors into account; remove prior"):
        valley(BEST, objective=objectives, search={})
