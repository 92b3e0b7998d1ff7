"""Failures are facts about a region: samplers are told, and the share of failing trials falls as a
study continues."""

import optuna
import pytest
from optuna.trial import TrialState

from benchmarks.simulation.running import simulate
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.search.samplers.view import FAILURE
from support.studies.small import Bowl, Simulation, budget_of, search_by, spec_with

HALF = Bowl(diverges=0.5)
TRIALS = 40


def run(sampler: str, seed: int, pruner: str = "none") -> History:
    budget = budget_of(TRIALS)
    return simulate(spec_with(seed=seed, budget=budget, search=search_by(sampler, pruner)), HALF, 2)


def failing(history: History, half: int) -> int:
    part = history.trials[TRIALS // 2 * half :][: TRIALS // 2]
    return sum(trial.state is State.FAILED for trial in part)


@pytest.mark.parametrize("sampler", [pytest.param("tpe", marks=pytest.mark.thorough), "curve_gp"])
def test_where_half_of_the_space_diverges_fewer_and_fewer_trials_do(sampler):
    studies = [run(sampler, seed) for seed in range(4)]
    early, late = (sum(failing(study, half) for study in studies) for half in (0, 1))
    assert late < early / 2
    assert late / (4 * TRIALS / 2) < 0.2


def test_to_a_sampler_a_failed_trial_is_the_worst_there_is_and_to_everybody_else_it_has_failed():
    spec = spec_with(budget=budget_of(12), search=search_by("tpe"))
    simulation = Simulation(spec, curves=HALF).run()
    view = simulation.study._context.searcher.proposals.view_for(simulation.history.trials[-1])
    failed = [
        t for t in view.get_trials() if simulation.history.trials[t.number].state is State.FAILED
    ]
    others = [t for t in view.get_trials() if t not in failed]
    assert failed
    assert {(t.state, t.value) for t in failed} == {
        (TrialState.COMPLETE, max(t.value or 0.0 for t in others))
    }
    assert {t.constraints[FAILURE.partition(":")[2]] for t in failed} == {1.0}
    assert {t.constraints[FAILURE.partition(":")[2]] for t in others} == {-1.0}
    study = simulation.study._context.searcher.searched()
    assert TrialState.FAIL in {trial.state for trial in study.trials}
    assert not any(trial.constraints for trial in study.trials)


@pytest.mark.thorough
@pytest.mark.parametrize("sampler", ["gp", "nsgaii", "nsgaiii", "cmaes", "qmc"])
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_every_other_sampler_goes_on_where_trials_fail(sampler):
    if sampler == "cmaes":
        pytest.importorskip("cmaes")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    history = run(sampler, 0)
    assert {trial.state for trial in history.trials} == {State.COMPLETE, State.FAILED}
