"""Who goes on in a whole study: slow starters, ties at the start, and the last paused trials."""

from collections.abc import Mapping
from typing import Any

import pytest

from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.rungs import Rungs
from hpsearch.search.searcher import Searcher
from hpsearch.study_file.models import StudySpec
from support.studies.small import Bowl, Simulation, brain, history_for, spec_with

TOTAL = 27.0


class SlowStarters(Bowl):
    """A greater x is behind at first and best at the end, as with a high learning rate."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        x = params["x"]
        end = 1.0 - 0.8 * x
        start = 1.0 + x
        left = (1.0 - resource / TOTAL) ** 3
        return {"loss": end + (start - end) * left}


def study_of(trials: int, **changes: Any) -> StudySpec:
    budget = {"trials": trials, "per_trial": {"epochs": int(TOTAL)}}
    return spec_with(**{"budget": budget, "search": {"sampler": "random"}, **changes})


def with_slow_starters(waiting: list[float]) -> Searcher:
    """A search whose complete trials cover the space; others wait at the first rung."""
    spec = study_of(100)
    history = history_for(spec)
    levels = [float(epoch) for epoch in range(1, 28)]
    complete = [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95]
    for x in complete:
        _trained(history, x, levels, State.COMPLETE)
    for x in waiting:
        _trained(history, x, levels[:2], State.PAUSED).rung = 0
    searcher = brain(spec, history)._context.searcher
    rungs = _rungs_of(searcher)
    for number in range(len(complete)):
        for rung in rungs.rungs:
            rung.exempt(number)
    return searcher


def _trained(history: History, x: float, levels: list[float], state: State) -> Trial:
    number = len(history.trials)
    trial = Trial(number, state, {"x": x}, resource=levels[-1])
    for level in levels:
        metrics = dict(SlowStarters().measure(trial.params, 0, level))
        trial.reports[level] = ReportRecord(number, level, metrics["loss"], metrics)
        trial.value = min(trial.value or 9.0, metrics["loss"])
    return history.add_trial(trial)


def _rungs_of(searcher: Searcher) -> Rungs:
    assert searcher._rungs is not None
    return searcher._rungs


WAITING = [0.1, 0.3, 0.45, 0.6, 0.75, 0.9]


def test_a_slow_starter_goes_on_where_configurations_like_it_have_ended_well():
    searcher = with_slow_starters(WAITING)
    assert searcher.promotion is not None
    promoted = searcher.promotion.in_quota()
    assert promoted is not None
    trial, judgement = promoted
    assert trial.params["x"] == 0.9
    assert judgement.why.startswith("it looks best")


def test_by_rank_the_same_slow_starter_would_be_the_last_to_go_on():
    searcher = with_slow_starters(WAITING)
    rungs = _rungs_of(searcher)
    rungs._order = None
    assert searcher.promotion is not None
    promoted = searcher.promotion.in_quota()
    assert promoted is not None
    assert promoted[0].params["x"] == 0.1
    by_rank = sorted(rungs.rungs[0].waiting, key=rungs.rungs[0].rank)
    assert searcher._history.trials[by_rank[-1]].params["x"] == 0.9


class Guessing(Bowl):
    """All answer with the majority class until a third of the budget is used."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        if resource < TOTAL / 3:
            return {"loss": 0.4722}
        return super().measure(params, seed, resource)


def test_where_all_still_guess_all_go_on_and_the_reason_is_recorded():
    simulation = Simulation(study_of(20), curves=Guessing())
    history = simulation.run().history
    first = history.trials[0].reports
    assert min(first) < TOTAL / 3
    lowest = min(trial.resource for trial in history.trials)
    assert lowest >= TOTAL / 3, "nobody ends where nothing has been learnt"
    reasons = [each.why for changes in simulation.written for each in changes.decisions]
    assert any("decides nothing" in why for why in reasons)


@pytest.mark.parametrize("seed", range(3))
def test_at_the_end_no_slot_is_free_while_a_paused_trial_may_win(seed):
    simulation = Simulation(study_of(12, seed=seed), workers=2)
    study, trials = simulation.study, simulation.history.trials
    side_by_side = 0
    while not study.finished:
        simulation.tick()
        if len(trials) < 12 or study.finished:
            continue
        started = {launched for launched in study.running if len(trials[launched].attempts) > 1}
        side_by_side += len(started) == 2
        if len(study.running) < 2:
            promotion = study._context.searcher.promotion
            assert promotion is not None
            assert promotion.likeliest_to_win() is None
    assert side_by_side, "two that were paused ran at the same time"


def test_who_waits_and_who_goes_on_is_recorded_with_its_level_and_its_reason():
    simulation = Simulation(study_of(20))
    history = simulation.run().history
    written = [each for changes in simulation.written for each in changes.decisions]
    rungs = [rung.level for rung in _rungs_of(simulation.study._context.searcher).rungs]
    paused = [each for each in written if each.kind is DecisionKind.PAUSE]
    promoted = [each for each in written if each.kind is DecisionKind.PROMOTE]
    assert paused
    assert promoted
    for decision in paused:
        assert decision.resource in rungs
        assert f" {decision.resource:g}" in decision.why
    for decision in promoted:
        assert decision.resource in rungs
        ranked = decision.why.startswith("it looks best; ")
        last = decision.why.startswith("could still become the best: probability ")
        assert ranked or last or decision.why.startswith("it is ahead of all that wait at ")
        assert history.trials[decision.trial].resource > decision.resource
