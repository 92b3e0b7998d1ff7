"""A report that is not finite after finite ones is divergence, whatever searches and prunes."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.selection import leading
from support.studies.small import Bowl, Simulation, brain, budget_of, search_by, spec_with


class Plunging(Bowl):
    """The best curves by far, which become `last` where x is high."""

    last = math.nan

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        if params["x"] < 0.7:
            return super().measure(params, seed, resource)
        return {"loss": -10.0 * resource if resource < 8 else self.last}


def plunge(last: float = math.nan, **changes: Any) -> History:
    curves = Plunging()
    curves.last = last
    return Simulation(spec_with(**changes), curves=curves).run().history


@pytest.mark.parametrize("last", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "pruner", ["promotion", "none", {"kind": "median", "n_startup_trials": 1}, "hyperband"]
)
@pytest.mark.parametrize("sampler", ["curve_gp", "tpe"])
def test_a_trial_that_diverges_in_the_end_has_failed_and_is_never_handed_out(last, pruner, sampler):
    budget = budget_of(20)
    history = plunge(last, search=search_by(sampler, pruner), budget=budget)
    reached = [trial for trial in history.trials if 8.0 in trial.reports]
    diverged = [trial for trial in reached if trial.params["x"] >= 0.7]
    assert diverged
    for trial in diverged:
        assert (trial.state, trial.error_kind) == (State.FAILED, ErrorKind.DIVERGED)
        assert trial.error_text == f"loss became {last} at 8, after finite values"
        assert max(trial.reports) == 8.0, "what was shown stays on record"
        assert trial.value == -70.0
        assert trial.expected is trial.expected_low is trial.expected_high is None
    best = leading(history.trials, "minimize")
    assert best is not None
    assert best.params["x"] < 0.7


def test_it_is_so_for_each_of_several_objectives():
    objectives = [
        {"metric": "loss", "direction": "minimize"},
        {"metric": "speed", "direction": "maximize"},
    ]
    study = brain(spec_with(objective=objectives))
    study.begin(0.0)
    study.on_event(ev.SlotUp("w0", "node", "cpu", 1.0), 0.0)
    study.on_tick(0.0)
    study.on_event(ev.Reported(0, 1, 0.5, {"loss": 1.0, "speed": 2.0}), 1.0)
    commands = study.on_event(ev.Reported(0, 1, 0.75, {"loss": 1.0, "speed": math.nan}), 2.0)
    assert commands == [ev.Stop(0, 1)]
    trial = study.history.trials[0]
    assert trial.error_text == "speed became nan at 0.75, after finite values"


def test_a_metric_that_is_not_known_at_first_may_be_so():
    study = brain(spec_with())
    study.begin(0.0)
    study.on_event(ev.SlotUp("w0", "node", "cpu", 1.0), 0.0)
    study.on_tick(0.0)
    assert study.on_event(ev.Reported(0, 1, 0.5, {"loss": math.nan}), 1.0) == []
    assert study.on_event(ev.Reported(0, 1, 0.75, {"loss": 1.0}), 2.0) == []
    assert study.history.trials[0].state is State.RUNNING


def test_a_driver_that_takes_the_study_up_judges_as_the_one_before():
    spec = spec_with(budget=budget_of(30))
    simulation = Simulation(spec, curves=Plunging())
    for _ in range(200):
        if not simulation.study.finished:
            simulation.tick()
    assert any(trial.error_kind is ErrorKind.DIVERGED for trial in simulation.history.trials)
    known = simulation.study._context.searcher._rungs
    again = brain(spec, simulation.history)._context.searcher._rungs
    assert known is not None
    assert again is not None
    for one, other in zip([*known.rungs, known.ended], [*again.rungs, again.ended], strict=True):
        assert (one.scores, one.gone_on) == (other.scores, other.gone_on)
