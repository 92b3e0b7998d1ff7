"""Large studies: however many trials have ended, a driver looks at a few of them for each decision.
Looks are counted, which does not depend on the machine."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hpsearch.domain.facts import ErrorKind, RequestKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, ReportRecord, Request, Trial
from hpsearch.search import searcher
from hpsearch.search.proposals import BEST_SHOWN, MOST_SHOWN
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec
from support.studies.small import Bowl, Simulation, history_for, search_by, spec_with

SMALL, LARGE = 1_500, 4_500
"""Both are more than what is shown to TPE, and followed by expectations, in full."""
WAITING = 20
TICKS = 25
PROMOTION = {"kind": "promotion", "first_rung": 1}


class Watched(list[Trial]):
    """Trials that count how often one of them is looked at."""

    looks = 0

    def __iter__(self) -> Iterator[Trial]:
        self.looks += len(self)
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        self.looks += len(range(*index.indices(len(self)))) if isinstance(index, slice) else 1
        return super().__getitem__(index)


def study(sampler: str, pruner: dict[str, Any], **budget: Any) -> StudySpec:
    return spec_with(
        search=search_by(sampler, pruner, confirm={"top": 2, "seeds": 2}),
        constraints={"loss": {"max": 1.2}},
        budget={"trials": 100_000, "per_trial": {"epochs": 9}, **budget},
    )


def with_past(spec: StudySpec, count: int) -> History:
    """A history in which so many trials have ended: in full, early or by failing; a few wait."""
    history = history_for(spec)
    distributions = space.distributions(spec.space)
    for number, x in enumerate(np.random.default_rng(1).random(count).tolist()):
        trial = Trial(number, State.PRUNED, {"x": x}, rung=0, speed=0.1, ended=1.0)
        trial.distributions = distributions
        levels = [1.0, 3.0, 9.0] if number % 5 == 0 else [1.0]
        for level in levels:
            metrics = dict(Bowl().measure({"x": x}, 0, level))
            trial.reports[level] = ReportRecord(number, level, metrics["loss"], metrics, 1)
            trial.value, trial.resource = metrics["loss"], level
        if len(levels) > 1:
            trial.state, trial.rung = State.COMPLETE, 1
        elif number % 5 == 1:
            trial.state, trial.error_kind = State.FAILED, ErrorKind.DIVERGED
        elif number >= count - WAITING:
            trial.state, trial.checkpoint, trial.ended = State.PAUSED, "1.0", None
        outcome = Outcome.COMPLETE
        trial.attempts.append(Attempt(number, 1, "s0", 0.0, ended=1.0, outcome=outcome))
        history.add_trial(trial)
    return history


def simulation_of(spec: StudySpec, count: int) -> tuple[Simulation, Watched]:
    history = with_past(spec, count)
    history.trials = watched = Watched(history.trials)
    simulation = Simulation(spec, history, workers=4)
    for _ in range(TICKS):  # standings are read once
        simulation.tick()
    return simulation, watched


def looks_of(spec: StudySpec, count: int) -> int:
    """The looks at trials in some ticks, with their events, proposals and requests."""
    simulation, watched = simulation_of(spec, count)
    watched.looks = 0
    for each in range(TICKS):
        simulation.tick()
        content = {"params": {"x": each / TICKS}}
        request = Request(each, RequestKind.PROPOSE, content, "me", simulation.executor.now)
        simulation.study.on_request(request, simulation.executor.now)
        assert request.refused is None
    return watched.looks


@pytest.mark.parametrize("sampler", ["random", "tpe", "curve_gp"])
@pytest.mark.parametrize("pruner", [PROMOTION, {"kind": "none"}], ids=["promotion", "none"])
@pytest.mark.parametrize("budget", [{}, {"gpu_hours": 1e4}, {"wall_clock": "9000h"}])
def test_a_decision_looks_at_no_more_trials_after_many_than_after_few(sampler, pruner, budget):
    # Looking once at each trial for a decision would be more than three times as many. The two
    # studies differ in what they decide, so also in how many trials get new expectations.
    spec = study(sampler, pruner, **budget)
    assert looks_of(spec, LARGE) <= 1.5 * looks_of(spec, SMALL)


def test_expectations_are_noted_of_a_few_trials_of_a_large_study():
    simulation, _ = simulation_of(study("random", PROMOTION), SMALL)
    simulation.written.clear()
    for _ in range(TICKS):
        simulation.tick()
    most = max(len(changes.trials) for changes in simulation.written)
    open_ones = len(simulation.history.open)
    assert 0 < most <= searcher.FOLLOWED + open_ones + TICKS


def test_tpe_sees_the_best_and_the_latest_trials_of_a_large_study():
    spec = study("tpe", {"kind": "none"})
    simulation, _ = simulation_of(spec, SMALL)
    trials = simulation.history.trials
    view = simulation.study._context.searcher.proposals.view_for(trials[-1])
    shown = {trial.number for trial in view.get_trials(deepcopy=False)}
    assert MOST_SHOWN - 2 * BEST_SHOWN < len(shown) <= MOST_SHOWN
    complete = [each for each in trials if each.state is State.COMPLETE and not each.violation]
    best = sorted(complete, key=lambda trial: (trial.value or 0.0, trial.number))[:BEST_SHOWN]
    assert {trial.number for trial in best} <= shown
    assert len(trials) - 1 in shown


def test_counts_are_those_of_all_trials():
    simulation, _ = simulation_of(study("random", PROMOTION), SMALL)
    history = simulation.history
    states = [trial.state for trial in history.trials]
    assert {state: states.count(state) for state in set(states)} == +history.states
    assert history.open == {each.number for each in history.trials if not each.state.terminal}
    repeats = [each.number for each in history.trials if each.role is Role.CONFIRM]
    assert history.repeats == repeats
    assert History(history.study, list(history.trials)).states == +history.states
