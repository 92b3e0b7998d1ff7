"""Limits on what is reported, several objectives, and known-good configurations, through the brain
and the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.simulation.running import simulate
from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState
from hpsearch.search.ranking.pareto import dominates, pareto_front
from hpsearch.search.ranking.selection import rank
from support.studies.small import (
    Bowl,
    Simulation,
    brain,
    budget_of,
    history_for,
    search_by,
    spec_with,
)

SPACE = {name: {"type": "float", "low": 0.0, "high": 1.0} for name in ("x", "y")}
LIMIT = {"latency_ms": {"max": 20}}
"""Kept where x is at most 0.2, and the best loss lies at 0.3."""
SEVERAL = [
    {"metric": "loss", "direction": "minimize"},
    {"metric": "speed", "direction": "maximize"},
]


@dataclass
class Costly(Bowl):
    """A bowl in two dimensions, whose latency grows with x; speed and loss are at odds along it."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        loss = (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2 + 1 / (1 + resource)
        return {
            "loss": loss,
            "latency_ms": 100 * params["x"],
            "speed": 1 - params["x"] - abs(params["y"] - 0.6),
        }


def limited(sampler: str, seed: int, pruner: str = "promotion", trials: int = 40) -> History:
    budget = budget_of(trials)
    search = search_by(sampler, pruner)
    return simulate(
        spec_with(seed=seed, space=SPACE, constraints=LIMIT, budget=budget, search=search),
        Costly(),
        2,
    )


# --------------------------------------------------------------------------------------------------
# limits


@pytest.mark.parametrize("sampler", ["curve_gp", "tpe", "nsgaii"])
def test_the_best_keeps_the_limit_though_better_values_lie_beyond_it(sampler):
    ranked = rank(limited(sampler, 0).trials, "minimize")
    keeping = [each.trial.params["x"] <= 0.2 for each in ranked]
    assert keeping == sorted(keeping, reverse=True), (
        "whoever keeps it stands before all that do not"
    )
    assert any(keeping)
    assert not all(keeping)


@pytest.mark.thorough
@pytest.mark.parametrize("sampler", ["curve_gp", pytest.param("tpe", marks=pytest.mark.thorough)])
def test_samplers_learn_where_the_limit_is_kept(sampler):
    late = [trial for seed in range(3) for trial in limited(sampler, seed, "none").trials[20:]]
    assert sum(trial.violation > 0 for trial in late) / len(late) < 0.6, (
        "of the whole space it is four fifths"
    )


def test_promotions_go_to_those_that_keep_the_limit():
    trials = limited("random", 0, trials=60).trials
    keeping = [trial.state is State.COMPLETE for trial in trials if trial.params["x"] <= 0.2]
    others = [trial.state is State.COMPLETE for trial in trials if trial.params["x"] > 0.2]
    assert sum(keeping) / len(keeping) > 3 * sum(others) / len(others)


def test_a_report_without_a_limited_metric_fails_the_trial_and_names_it():
    spec = spec_with(constraints={"parameters": {"max": 5e6}})
    trial = Simulation(spec, curves=Bowl()).run().history.trials[0]
    assert trial.state is State.FAILED
    assert trial.error_text == "the report at 1 has no parameters; it has loss"


def test_a_target_is_reached_within_the_limits_only():
    budget = budget_of(40, target=0.14)
    spec = spec_with(space=SPACE, constraints=LIMIT, budget=budget, search=search_by())
    history = Simulation(spec, curves=Costly()).run().history
    reached = [trial.violation > 0 for trial in history.trials if (trial.value or 1.0) <= 0.14]
    assert len(reached) > 1
    assert reached == [True] * (len(reached) - 1) + [False]


# ------------------------------------------------------------------------------------------ several
# objectives


@pytest.mark.parametrize("sampler", [None, "nsgaii", "nsgaiii", "random", "qmc"])
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("pruner", ["none", "promotion"])
def test_several_objectives_give_a_front_that_nothing_beats(sampler, pruner):
    search = {"pruner": pruner} if sampler is None else search_by(sampler, pruner)
    budget = budget_of(40)
    spec = spec_with(space=SPACE, objective=SEVERAL, budget=budget, search=search)
    history = simulate(spec, Costly(), 2)
    assert history.study.state is StudyState.FINISHED
    assert history.study.directions == ("minimize", "maximize")
    losses = {
        trial.number: (trial.values[0], -trial.values[1])
        for trial in history.trials
        if trial.values
    }
    front = [each.trial.number for each in pareto_front(history.trials, history.study.directions)]
    assert len(front) > 2
    assert not any(dominates(losses[other], losses[number]) for number in front for other in losses)
    assert all(
        any(dominates(losses[n], losses[other]) for n in front)
        for other in losses.keys() - set(front)
    )
    assert [losses[n][0] for n in front] == sorted(losses[n][0] for n in front)


def several_with_rungs(trials: int = 40, **changes: Any) -> Simulation:
    budget = budget_of(trials)
    search = search_by(pruner="promotion")
    return Simulation(
        spec_with(space=SPACE, objective=SEVERAL, budget=budget, search=search, **changes),
        curves=Costly(),
    )


def test_the_second_objective_counts_at_rungs_too():
    trials = several_with_rungs().run().history.trials
    complete = {trial.number for trial in trials if trial.state is State.COMPLETE}
    assert 4 <= len(complete) < 15
    shown = {trial.number: trial.reports[1.0].metrics for trial in trials}
    assert max(shown, key=lambda number: shown[number]["speed"]) in complete
    assert min(shown, key=lambda number: shown[number]["loss"]) in complete
    losses = {number: (each["loss"], -each["speed"]) for number, each in shown.items()}
    for number in shown.keys() - complete:
        assert any(dominates(losses[other], losses[number]) for other in complete), (
            "no trial waits in the end that nothing beats"
        )


@pytest.mark.parametrize("constraints", [{}, LIMIT])
def test_fronts_that_are_read_from_the_records_are_those_that_were_kept(constraints):
    simulation = several_with_rungs(20, constraints=constraints)
    while not simulation.study.finished:
        simulation.tick()
        kept = simulation.study._context.searcher._rungs
        read = brain(simulation.study.spec, simulation.history)._context.searcher._rungs
        assert kept is not None
        assert read is not None
        for one, other in zip(kept.rungs, read.rungs, strict=True):
            assert one.scores == other.scores
            assert [*map(one.rank, one.scores)] == [*map(other.rank, one.scores)]
            assert one.waiting == other.waiting
            assert one.gone_on == other.gone_on


def test_limits_hold_for_several_objectives_too():
    spec = spec_with(
        space=SPACE, objective=SEVERAL, constraints=LIMIT, budget=budget_of(40), search={}
    )
    history = simulate(spec, Costly(), 2)
    assert all(
        each.trial.params["x"] <= 0.2
        for each in pareto_front(history.trials, history.study.directions)
    )


# -------------------------------------------------------------------------------------------------
# known-good


def test_known_good_configurations_from_the_command_line_are_tried_next():
    spec = spec_with(space=SPACE, enqueue=[{"x": 0.1, "y": 0.2}], budget=budget_of(9))
    history = history_for(spec)
    first = Simulation(spec, history)
    while len(history.trials) < 4:
        first.tick()
    first.study.interrupt()
    first.run()
    history.study.enqueued = [{"x": 0.5}, {"x": 0.6, "y": 0.7}]
    trials = Simulation(spec, history, start=first.executor.now).run().history.trials
    asked_for = [
        (trial.number, trial.params["x"]) for trial in trials if trial.role is Role.ENQUEUED
    ]
    assert asked_for == [(0, 0.1), (4, 0.5), (5, 0.6)]
    assert trials[5].params["y"] == 0.7
