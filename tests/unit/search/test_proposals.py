"""The configurations that are drawn keep the requirements of their study, whatever draws them."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.errors import UserError
from hpsearch.search import proposals, untried
from hpsearch.study_file import methods
from hpsearch.study_file import space as spaces
from hpsearch.study_file.methods import CURVE_GP, SAMPLERS
from hpsearch.study_file.models import StudySpec
from support.studies.small import Simulation, brain, history_for, spec_with

pytestmark = pytest.mark.filterwarnings("ignore")  # Optuna's remarks on experimental classes

SPACE: dict[str, Any] = {
    "heads": {"type": "int", "low": 1, "high": 8},
    "width": {"type": "int", "low": 8, "high": 64, "step": 8},
    "optimizer": {"type": "categorical", "choices": ["adam", "sgd"]},
    "x": {"type": "float", "low": 0.0, "high": 1.0, "step": 0.25},
    "beta": {
        "type": "float",
        "low": 0.0,
        "high": 1.0,
        "step": 0.25,
        "when": "optimizer == 'adam' and width > 16",
    },
}
REQUIRES = ["heads * 16 <= width", "x + beta <= 0.5"]


class Edge:
    """A loss that falls towards configurations that the requirements forbid."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        away = 8 - params["heads"] + params["width"] / 8
        total = params.get("x", 0.0) + params.get("beta", 0.0)
        return {"loss": away + 1 - total + 1 / (1 + resource)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource


def study_of(sampler: Any, trials: int = 50, **changes: Any) -> StudySpec:
    sections: dict[str, Any] = {
        "space": SPACE,
        "requires": REQUIRES,
        "search": {"sampler": sampler, "pruner": "none"},
        "budget": {"trials": trials, "per_trial": {"epochs": 2}},
    }
    return spec_with(**{**sections, **changes})


def trials_of(spec: StudySpec) -> list[Trial]:
    curves: Any = Edge()
    return Simulation(spec, curves=curves, workers=1).run().history.trials


def keeps(params: Mapping[str, Any]) -> bool:
    is_active = params["optimizer"] == "adam" and params["width"] > 16
    assert ("beta" in params) == is_active
    total = params["x"] + params.get("beta", 0.0)
    return params["heads"] * 16 <= params["width"] and (not is_active or total <= 0.5)


@pytest.mark.parametrize("sampler", [CURVE_GP, *SAMPLERS])
def test_every_sampler_keeps_the_requirements(sampler):
    count = 16 if sampler == "gp" else 50  # it fits a model for each draw
    found = trials_of(study_of(sampler, count))
    assert len(found) == count
    assert all(keeps(trial.params) for trial in found)
    assert len({tuple(trial.params.items()) for trial in found}) > 5


def test_brute_force_tries_each_allowed_configuration_once_and_ends():
    space = {name: SPACE[name] for name in ("heads", "width", "optimizer")}
    spec = study_of("brute_force", 500, space=space, requires=["width % (heads * 16) == 0"])
    found = trials_of(spec)
    tried = {tuple(trial.params[name] for name in space) for trial in found}
    grid = product(range(1, 9), range(8, 65, 8), ("adam", "sgd"))
    assert tried == {each for each in grid if each[1] % (each[0] * 16) == 0}
    assert len(found) == len(tried)


def test_curve_gp_proposes_near_the_boundary_and_never_beyond():
    free = {name: {"type": "float", "low": 0.0, "high": 1.0} for name in ("x", "y")}

    class Outward(Edge):
        def measure(
            self, params: Mapping[str, Any], seed: int, resource: float
        ) -> Mapping[str, float]:
            return {"loss": 2 - params["x"] - params["y"] + 1 / (1 + resource)}

    spec = study_of(CURVE_GP, 40, space=free, requires=["x + y <= 0.6"])
    curves: Any = Outward()
    sums = [
        sum(trial.params.values())
        for trial in Simulation(spec, curves=curves, workers=1).run().history.trials
    ]
    assert max(sums) <= 0.6
    assert sum(each > 0.55 for each in sums) > 8


@pytest.mark.parametrize("sampler", ["random", "tpe", "qmc", "nsgaii", "gp", "brute_force"])
def test_a_study_that_is_taken_up_again_proposes_what_it_would_have(sampler):
    spec = study_of(sampler, 20)
    trials = trials_of(spec)
    again = history_for(spec)
    for trial in trials[:12]:
        again.add_trial(trial)
    assert proposed(spec, again).params == trials[12].params


@pytest.mark.parametrize("kind", ["tpe", "cmaes", "nsgaii", "nsgaiii"])
def test_a_sampler_is_told_the_parameters_that_it_would_find_in_all_trials(kind, monkeypatch):
    """It is made for one trial alone, and would look for them anew each time."""
    small = {"population_size": 4} if kind.startswith("nsga") else {}
    sampler = {"kind": kind, **small}
    spec = study_of(sampler, 16, space={"y": {**SPACE["x"]}, **SPACE, "beta": SPACE["x"]})
    told = [trial.params for trial in trials_of(spec)]
    monkeypatch.setattr(methods, "INTERSECTING", frozenset())
    found = [trial.params for trial in trials_of(spec)]
    assert told == found


def proposed(spec: StudySpec, history: History, given: dict[str, Any] | None = None) -> Trial:
    trial = history.add_trial(Trial(len(history.trials), State.QUEUED, {}))
    brain(spec, history)._context.searcher.proposals.propose(trial, given)
    return trial


@pytest.mark.parametrize("sampler", [CURVE_GP, "random", "brute_force"])
def test_what_is_given_stays_and_the_rest_fits_it(sampler):
    spec = study_of(sampler)
    trial = proposed(spec, history_for(spec), {"heads": 4, "x": 0.5})
    assert trial.params["heads"] == 4
    assert trial.params["width"] == 64
    assert keeps(trial.params)


def test_a_seldom_kept_requirement_is_found_by_chance(monkeypatch):
    spec = study_of("random", requires=["x == 0.75 and heads == 7 and width == 56"])
    assert proposed(spec, history_for(spec)).params["heads"] == 7
    monkeypatch.setattr(spaces, "MOST_DRAWS", 1)
    monkeypatch.setattr(proposals, "ATTEMPTS", 1)
    monkeypatch.setattr(untried, "MOST", 0)  # the space counts as too large to be listed
    with pytest.raises(UserError, match="trial 0: none of 1 random configurations keeps"):
        proposed(spec, history_for(spec))


def test_a_study_without_requirements_draws_once():
    assert [trial.params for trial in trials_of(study_of("tpe", 5, requires=[]))] == [
        trial.params for trial in trials_of(study_of("tpe", 5, requires=["x >= 0"]))
    ]
