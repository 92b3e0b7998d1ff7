"""Trials pause where that pays: where they keep their state, and a start takes little."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome
from support.studies.small import Bowl, Simulation, budget_of, search_by, spec_with

TRIALS, EPOCHS = 12, 9


class Forgetful(SimulatedExecutor):
    """Attempts that keep nothing: each begins from the beginning."""

    def _save(self, run: Any) -> None:
        return None


def ended(
    *, keeps: bool, start_s: float, pause: bool | str = "auto", pruner: str = "promotion"
) -> Simulation:
    """A study to its end, whose trials train 45 to 135 s."""
    how: Any = {"kind": pruner, "pause": pause} if pruner == "promotion" else pruner
    spec = spec_with(budget=budget_of(TRIALS, EPOCHS), search=search_by(pruner=how))
    simulation = Simulation(spec, curves=Bowl(), cold_s=start_s, warm_s=start_s)
    if not keeps:
        simulation.executor.__class__ = Forgetful
    return simulation.run()


def outcomes(simulation: Simulation) -> list[Outcome | None]:
    trials = simulation.history.trials
    return [attempt.outcome for trial in trials for attempt in trial.attempts]


@pytest.mark.parametrize("start_s", [0.0, 1.0, 10.0, 60.0])
def test_trials_that_keep_nothing_start_once_and_never_take_longer_than_in_full(start_s):
    study = ended(keeps=False, start_s=start_s)
    in_full = ended(keeps=False, start_s=start_s, pruner="none")
    assert len(outcomes(study)) == TRIALS
    assert Outcome.PAUSED not in outcomes(study)
    assert State.PRUNED in {trial.state for trial in study.history.trials}
    trained, all_trained = (
        sum(attempt.gpu_seconds - start_s for attempt in attempts)
        for attempts in (
            [each for trial in simulation.history.trials for each in trial.attempts]
            for simulation in (study, in_full)
        )
    )
    assert trained <= 0.7 * all_trained
    best = min(trial.value for trial in in_full.history.trials if trial.value is not None)
    assert min(t.value for t in study.history.trials if t.value is not None) == best


def test_trials_that_keep_their_state_pause_where_a_start_is_cheap():
    assert Outcome.PAUSED in outcomes(ended(keeps=True, start_s=0.1))


def test_trials_that_keep_their_state_do_not_pause_where_a_start_is_dear():
    """The first ones do: how long a start takes is known once a trial has reported twice."""
    paused = outcomes(ended(keeps=True, start_s=60.0)).count(Outcome.PAUSED)
    assert paused <= 2


@pytest.mark.parametrize(("keeps", "pause"), [(False, True), (True, False)])
def test_what_the_study_file_says_of_pauses_stays(keeps, pause):
    study = ended(keeps=keeps, start_s=1.0, pause=pause)
    assert (Outcome.PAUSED in outcomes(study)) is pause
    assert len(outcomes(study)) > TRIALS if pause else len(outcomes(study)) == TRIALS
