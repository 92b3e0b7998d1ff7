"""What people ask of a study while it runs."""

from typing import Any

import pytest

from hpsearch.domain.facts import RequestKind, Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Request, StudyState, Trial
from support.studies.small import Simulation, budget_of, spec_with


def asked(simulation: Simulation, kind: RequestKind, **content: Any) -> Request:
    """Ask something of a study between two ticks, as its driver does."""
    request = Request(1, kind, content, "ann@desk", created=0.0)
    now = simulation.executor.now
    commands = simulation.study.on_request(request, now)
    changes = simulation.history.drain()
    assert changes.requests == [request]
    assert request.handled == now
    simulation.written.append(changes)
    for command in commands:
        getattr(simulation.executor, type(command).__name__.lower())(command)
    return request


def study_until(state: State, trials: int = 9, **changes: Any) -> tuple[Simulation, Trial]:
    """A study of some trials, run until one is in a state, with that trial."""
    budget = budget_of(trials, gpu_hours=1000)
    simulation = Simulation(spec_with(**{"budget": budget, **changes}))
    for _ in range(1000):
        simulation.tick()
        for trial in simulation.history.trials:
            if trial.state is state:
                return simulation, trial
    raise AssertionError(f"no trial became {state}")


def reasons(written: list[Changes], number: int) -> list[str]:
    return [each.why for tick in written for each in tick.decisions if each.trial == number]


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED])
def test_a_trial_is_stopped_for_good_and_the_study_goes_on_without_it(state):
    simulation, trial = study_until(state)
    assert asked(simulation, RequestKind.STOP, trial=trial.number).refused is None
    simulation.run()
    assert trial.state is State.PRUNED
    assert trial.resource < 9
    assert "stopped by ann@desk" in reasons(simulation.written, trial.number)
    assert simulation.history.study.state is StudyState.FINISHED
    assert len(simulation.history.trials) == 9
    assert all(attempt.ended is not None for attempt in trial.attempts)


def test_what_has_ended_or_is_not_there_cannot_be_stopped():
    simulation, trial = study_until(State.COMPLETE)
    refused = asked(simulation, RequestKind.STOP, trial=trial.number).refused
    assert refused == f"trial {trial.number} has ended already: complete"
    for wrong in (99, -1, None, "1"):
        assert "there is no trial" in str(asked(simulation, RequestKind.STOP, trial=wrong).refused)


def test_a_proposal_is_tried_before_anything_new_and_its_missing_parameters_are_drawn():
    space = {
        "x": {"type": "float", "low": -1.0, "high": 1.0},
        "y": {"type": "int", "low": 0, "high": 9},
    }
    simulation, _ = study_until(State.PAUSED, trials=12, space=space)
    before = len(simulation.history.trials)
    request = asked(simulation, RequestKind.PROPOSE, params={"x": 0.25}, why="it worked before")
    assert request.trial == before
    trial = simulation.history.trials[before]
    assert trial.role is Role.PROPOSED
    assert trial.params["x"] == 0.25
    assert trial.params["y"] in range(10)
    simulation.run()
    assert trial.reports
    told = reasons(simulation.written, trial.number)
    assert told[0] == "asked for by ann@desk: it worked before"
    assert told[1] == "asked for while the study ran"
    assert len(simulation.history.trials) == 12  # it counts as one of them


def test_a_proposal_waits_for_the_next_driver_if_its_own_dies():
    simulation, _ = study_until(State.PAUSED, trials=12)
    number = asked(simulation, RequestKind.PROPOSE, params={"x": 0.25}).trial
    resumed = Simulation(simulation.study.spec, simulation.history, start=simulation.executor.now)
    resumed.run()
    assert number is not None
    assert resumed.history.trials[number].reports


def test_a_proposal_outside_the_space_or_beyond_the_budget_is_refused():
    simulation, _ = study_until(State.PAUSED)
    for params in ({"x": 77.0}, {"z": 1}, None):
        assert asked(simulation, RequestKind.PROPOSE, params=params).refused, params
    while len(simulation.history.trials) < 9:
        simulation.tick()
    refused = asked(simulation, RequestKind.PROPOSE, params={"x": 0.25}).refused
    assert refused == "all 9 trials of the budget have started"
    assert len(simulation.history.trials) == 9


def test_a_budget_is_raised_and_kept_for_later_drivers():
    simulation, _ = study_until(State.PAUSED)
    assert asked(simulation, RequestKind.BUDGET, trials=15, gpu_hours=2000).refused is None
    simulation.run()
    assert len(simulation.history.trials) == 15
    assert "trials: 15" in simulation.history.study.spec
    assert simulation.study.spending.ledger.whole(None) == 2000 * 3600


@pytest.mark.parametrize(
    "limits",
    [{}, {"trials": 9}, {"trials": 3}, {"wall_clock": "4h"}, {"seed": 7}, {"trials": "many"}],
)
def test_a_limit_can_only_be_raised(limits):
    simulation, _ = study_until(State.PAUSED)
    assert asked(simulation, RequestKind.BUDGET, **limits).refused
    simulation.run()
    assert len(simulation.history.trials) == 9


def test_a_raised_budget_of_gpu_time_lets_a_study_go_on():
    budget = budget_of(gpu_hours=0.02)
    unchanged = Simulation(spec_with(budget=budget)).run()
    simulation = Simulation(spec_with(budget=budget))
    while simulation.study.spending.ledger.spent < 20:
        simulation.tick()
    assert asked(simulation, RequestKind.BUDGET, gpu_hours=0.06).refused is None
    simulation.run()
    assert simulation.study.spending.ledger.spent > unchanged.study.spending.ledger.whole(None)
    assert simulation.study.spending.ledger.spent <= 0.06 * 3600


def test_a_study_that_is_ending_refuses_everything():
    simulation, _ = study_until(State.PAUSED)
    simulation.run()
    refused = asked(simulation, RequestKind.PROPOSE, params={"x": 0.25}).refused
    assert "the study is ending" in str(refused)
