"""A trial that paused is trained to its end because somebody wants that."""

from typing import Any

import pytest

from hpsearch.brain.reopening import reopen, train_in_full
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.errors import UserError
from support.studies.small import Simulation, budget_of, spec_with


def ended(**changes: Any) -> Simulation:
    return Simulation(spec_with(**changes), workers=1).run()


def finished(before: Simulation, number: int, *, has_checkpoint: bool = True) -> Simulation:
    """The study after another driver that trains one trial to its end."""
    train_in_full(before.history, number, has_checkpoint=has_checkpoint)
    reopen(before.history)
    spec, start = before.study.spec, before.executor.now
    return Simulation(spec, before.history, workers=2, start=start).run()


def worst_left(simulation: Simulation) -> Trial:
    left = [each for each in simulation.history.trials if each.state is State.PRUNED]
    return max(left, key=lambda trial: trial.value or 0.0)


def states(simulation: Simulation) -> dict[int, State]:
    return {trial.number: trial.state for trial in simulation.history.trials}


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_finished_study_goes_on_for_one_trial_alone(has_checkpoint):
    study = ended()
    trial = worst_left(study)
    before, rested_at = states(study), trial.trains_from
    after = finished(study, trial.number, has_checkpoint=has_checkpoint)
    assert states(after) == {**before, trial.number: State.COMPLETE}
    assert trial.attempts[-1].start_resource == (rested_at if has_checkpoint else 0.0)
    assert max(trial.reports) == 9.0
    assert trial.attempts[-1].number == len(trial.attempts)
    assert after.history.study.reason == f"trial {trial.number} was asked for, and has ended"


def test_a_study_that_ended_at_its_target_or_under_a_pruner_of_optuna_does_so_too():
    target = ended(budget=budget_of(40, target=0.2))
    pruned = ended(search={"pruner": "median", "sampler": "random"}, budget=budget_of(20))
    for study in (target, pruned):
        trial, before = worst_left(study), states(study)
        assert states(finished(study, trial.number)) == {**before, trial.number: State.COMPLETE}


def test_an_interrupted_study_trains_the_trial_and_then_goes_on():
    study = Simulation(spec_with(budget=budget_of(12)), workers=1)
    while not study.history.states[State.PAUSED]:
        study.tick()
    study.study.interrupt()
    study.run()
    paused = next(each for each in study.history.trials if each.state is State.PAUSED)
    after = finished(study, paused.number)
    assert paused.state is State.COMPLETE
    assert after.history.study.reason == "all 12 trials have ended"


def test_a_study_with_more_budget_after_that_goes_on_as_ever():
    study = ended()
    spent = study.study.spending.ledger.spent
    limits = budget_of(9, gpu_hours=(spent + 1) / 3600)
    study.study._context.spec = spec_with(budget=limits)
    trial = worst_left(study)
    after = finished(study, trial.number)
    assert trial.state is State.PRUNED
    assert after.history.study.reason == "the budget left is too small for another trial"
    after.study._context.spec = spec_with(budget=budget_of(12))
    reopen(after.history)
    last = Simulation(after.study.spec, after.history, start=after.executor.now).run()
    assert len(last.history.trials) == 12
    assert trial.state is State.COMPLETE


def test_what_cannot_go_on_is_refused_with_its_reason():
    study = ended()
    history = study.history
    history.study.state = StudyState.FINISHED
    complete = next(each.number for each in history.trials if each.state is State.COMPLETE)
    for number, why in ((99, "has no trial 99"), (-1, "no trial -1"), (complete, "is complete")):
        with pytest.raises(UserError, match=why):
            train_in_full(history, number, has_checkpoint=True)
    left = worst_left(study)
    left.state = State.FAILED
    with pytest.raises(UserError, match="failed"):
        train_in_full(history, left.number, has_checkpoint=True)
