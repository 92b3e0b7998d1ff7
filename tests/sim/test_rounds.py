"""Studies whose trials train on folds or with several seeds: what a trial is worth, and how sure
that is."""

import math
from contextlib import closing

import numpy as np
import pytest

from benchmarks.simulation.running import IN_MEMORY, SimulatedExecutor
from hpsearch.domain.lifecycle import State
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.reading.best import best_trials
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.rounds import noise_of_rounds, over_rounds
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from support.studies.small import Bowl, Simulation, search_by, spec_with

FOLDS = 5


class Folds(Bowl):
    """Folds of different difficulty, on which each training varies by 0.05."""

    difficulty = (0.0, 1.0, 0.5, 0.2, 0.3)
    noise = 0.05

    def measure(self, params, seed, resource):
        generator = np.random.default_rng(seed)
        noise = generator.normal(0, self.noise, FOLDS)
        of_folds = (params["x"] - 0.3) ** 2 + np.array(self.difficulty) + noise
        return {"loss": float(of_folds[: int(resource)].mean())}


def spec_of(unit="folds", trials=12, pruner="promotion", **limits):
    budget = {"trials": trials, **limits, "per_trial": {"epochs": 2, unit: FOLDS}}
    return spec_with(budget=budget, search=search_by("curve_gp", pruner))


@pytest.fixture(scope="module")
def study():
    return Simulation(spec_of(), curves=Folds()).run()


def test_a_trial_is_worth_the_mean_over_all_its_folds_however_easy_the_first_one_was(study):
    for trial in study.history.trials:
        assert trial.value == trial.reports[trial.resource].value
    assert max(trial.value for trial in study.history.trials if trial.resource == FOLDS) > 0.4


def test_weak_configurations_train_on_the_first_folds_alone(study):
    trials = study.history.trials
    complete = [trial for trial in trials if trial.state is State.COMPLETE]
    pruned = [trial for trial in trials if trial.state is State.PRUNED]
    assert len(pruned) >= len(trials) / 2
    assert {trial.resource for trial in pruned} <= {1.0, 2.0}
    far = [np.mean([abs(trial.params["x"] - 0.3) for trial in some]) for some in (complete, pruned)]
    assert far[0] < far[1]


def test_what_is_expected_of_a_stopped_trial_counts_the_folds_that_it_has_not_seen(study):
    truth = np.mean(Folds.difficulty)
    for trial in study.history.trials:
        expected = (trial.params["x"] - 0.3) ** 2 + truth
        assert trial.expected == pytest.approx(expected, abs=0.12)


def test_one_easy_fold_is_not_the_target_of_a_study():
    study = Simulation(spec_of(target=0.405), curves=Folds()).run()
    trials = study.history.trials
    assert any(trial.reports[1].value < 0.2 for trial in trials)
    (reached,) = [each for each in trials if each.resource == FOLDS and each.value <= 0.405]
    assert study.study.reason == f"trial {reached.number} reached the target with {reached.value:g}"


@pytest.mark.parametrize("unit", ["folds", "seeds"])
def test_rounds_tell_how_far_trainings_vary_whatever_the_difficulty_of_folds(unit):
    spec = spec_of(unit, trials=40, pruner="none")
    with closing(Store.open(IN_MEMORY)) as store:
        history = create_study(store, spec, "")
        lease = store.acquire(history.study.id, "driver", 1e5)
        executor = SimulatedExecutor(Folds(), trial_budget(spec), 2)
        brain = build_study(history, spec)
        Driver(brain, executor, store, lease, None, executor.clock).run()
        with store.reading() as connection:
            study = find_study(connection, spec.study)
            noise = noise_of_rounds(connection, study)
            (best,) = best_trials(connection, study, 1)
            over = over_rounds(connection, study, best.trial.number)
    assert noise.freedom == 40 * 4
    assert math.sqrt(noise.squares / noise.freedom) == pytest.approx(0.05 / math.sqrt(5), rel=0.2)
    again = best.again
    assert (again.high - again.low) / 2 == pytest.approx(1.65 * 0.05 * math.sqrt(2 / 5), rel=0.2)
    assert (over.mean, over.runs) == (pytest.approx(best.value), FOLDS)
    share = 1 / 5 + (1 / 4 if unit == "folds" else 0)
    reach = 2.13 * np.std(Folds.difficulty, ddof=1) * math.sqrt(share)
    assert over.high - over.mean == pytest.approx(reach, rel=0.3)
