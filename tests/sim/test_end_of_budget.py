"""How studies end: at each limit, with what can still win finished; how they continue with more."""

from typing import Any

import pytest

from hpsearch.brain.reopening import reopen
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.search.promotion import IDLE
from hpsearch.search.searcher import Searcher
from support.studies.small import Bowl, Simulation, search_by, spec_with

EPOCHS = {"per_trial": {"epochs": 9}}


def ended(history: History) -> dict[State, int]:
    states = [trial.state for trial in history.trials]
    return {state: states.count(state) for state in State}


def seconds(history: History) -> float:
    return sum(attempt.gpu_seconds for trial in history.trials for attempt in trial.attempts)


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"trials": 12}, "all 12 trials have ended"),
        ({"gpu_hours": 0.3}, "the budget left is too small for another trial"),
        ({"cost": 0.6, "cost_per_gpu_hour": 2.0}, "the budget left is too small for another trial"),
        ({"wall_clock": "9m"}, ""),
        ({"trials": 50, "target": 0.11}, "reached the target"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_study_ends_at_whichever_limit_comes_first(limit, reason):
    generous = {"trials": 1000, "gpu_hours": 1000.0, "wall_clock": "50d"}
    done = Simulation(spec_with(budget={**generous, **EPOCHS, **limit}), workers=2).run()
    assert reason in (done.history.study.reason or "")
    assert done.history.study.state is StudyState.FINISHED
    assert all(trial.state.terminal for trial in done.history.trials)
    assert (
        seconds(done.history)
        <= min(limit.get("gpu_hours", 1000.0), limit.get("cost", 2000.0) / 2) * 3600
    )
    assert done.executor.now <= (600.0 if "wall_clock" in limit else float("inf"))


def test_no_trial_starts_that_cannot_get_to_the_highest_rung_before_the_wall_clock_stops():
    spec = spec_with(budget={"wall_clock": "15m", **EPOCHS}, search=search_by())
    done = Simulation(spec, workers=4, curves=Bowl()).run()
    started = max(trial.started or 0.0 for trial in done.history.trials)
    assert started < 840  # a trial of 9 epochs takes 90 s on average
    rungs = spec_with(budget={"wall_clock": "15m", **EPOCHS})
    done = Simulation(rungs, workers=4, curves=Bowl()).run()
    started = max(trial.started or 0.0 for trial in done.history.trials)
    assert started < 880  # 3 epochs take 30 s, and there the highest rung is
    resumed = [a for trial in done.history.trials for a in trial.attempts if a.start_resource > 0]
    assert max(a.started for a in resumed) > 840, "what waits goes on, as far as it gets"


@pytest.mark.thorough
def test_what_can_still_win_goes_on_before_a_new_trial_that_cannot(monkeypatch):
    spec = spec_with(budget={"wall_clock": "15m", **EPOCHS})
    simulation = Simulation(spec, workers=8, curves=Bowl())
    searcher: Searcher = simulation.study._context.searcher
    propose = searcher.proposals.propose

    def proposes(trial: Trial, given: dict[str, Any] | None = None) -> None:
        left = 900 - simulation.executor.now

        def can_go_on(paused: Trial) -> bool:
            return searcher.stretch(paused) * 10 <= 0.9 * left

        if left < 80:  # a new one takes 90 s
            assert searcher.promotion is not None
            assert searcher.promotion.likeliest_to_win(can_go_on, IDLE) is None
        propose(trial, given)

    monkeypatch.setattr(searcher.proposals, "propose", proposes)
    trials = simulation.run().history.trials
    resumed = [each for trial in trials for each in trial.attempts if each.start_resource > 0]
    in_part = [each for each in resumed if 900 - each.started < 5 * (9 - each.start_resource)]
    assert in_part, "also where it cannot be trained in full"


def test_a_budget_in_which_no_trial_ends_is_used_to_get_as_far_as_it_lasts():
    spec = spec_with(budget={"wall_clock": "1m", **EPOCHS})  # a trial takes 90 s
    done = Simulation(spec, workers=4, curves=Bowl()).run()
    trials = done.history.trials
    assert all(trial.state is not State.COMPLETE for trial in trials)
    assert len(trials) > 4, "more are tried than there are workers"
    best = min(trials, key=lambda trial: trial.value if trial.value is not None else 9.0)
    assert best.resource > 3, "the most promising one has gone past the highest rung"
    assert seconds(done.history) > 0.9 * 4 * 60, "no slot has waited"


def test_where_only_time_is_limited_a_slot_takes_what_it_would_idle_for_otherwise():
    used = []
    for others in ({}, {"trials": 1000}):
        spec = spec_with(budget={"wall_clock": "4m", **others, **EPOCHS})
        used.append(seconds(Simulation(spec, workers=16, curves=Bowl()).run().history))
    alone, with_others = used
    assert alone > with_others
    assert alone > 0.9 * 16 * 240


def test_at_the_end_the_best_paused_trials_are_trained_in_full():
    spec = spec_with(budget={"wall_clock": "10m", **EPOCHS})
    done = Simulation(spec, workers=2).run()
    best = min(
        (t for t in done.history.trials if t.value is not None), key=lambda t: t.value or 0.0
    )
    assert best.state is State.COMPLETE
    assert best.resource == 9


def test_what_waited_in_a_finished_study_waits_again_in_one_with_a_larger_budget():
    first = Simulation(spec_with(budget={"trials": 12, **EPOCHS})).run()
    history = first.history
    left = [trial.number for trial in history.trials if trial.state is State.PRUNED]
    assert left
    reopen(history)
    assert all(history.trials[number].state is State.PAUSED for number in left)
    assert all(history.trials[number].ended is None for number in left)
    more = Simulation(
        spec_with(budget={"trials": 40, **EPOCHS}), history, start=first.executor.now
    ).run()
    assert len(more.history.trials) == 40
    ended_again = {history.trials[number].state for number in left}
    assert ended_again <= {State.PRUNED, State.COMPLETE}


def test_a_trial_whose_checkpoint_is_gone_does_not_come_back():
    history = Simulation(spec_with(budget={"trials": 12, **EPOCHS})).run().history
    left = [trial for trial in history.trials if trial.state is State.PRUNED]
    left[0].checkpoint = None
    reopen(history)
    assert left[0].state is State.PRUNED
    assert left[1].state is State.PAUSED


def test_what_a_pruner_stopped_stays_stopped():
    spec = spec_with(search=search_by(pruner="median"), budget={"trials": 20, **EPOCHS})
    history = Simulation(spec).run().history
    before = ended(history)
    assert before[State.PRUNED]
    reopen(history)
    assert ended(history) == before


def test_an_interrupted_study_is_not_reopened():
    study = Simulation(spec_with(budget={"trials": 12, **EPOCHS}))
    for _ in range(10):
        study.tick()
    study.study.interrupt()
    study.study.abandon(study.executor.now)
    study.study.close(study.executor.now)
    before = ended(study.history)
    reopen(study.history)
    assert ended(study.history) == before
