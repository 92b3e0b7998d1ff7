"""The use of what is not public in Optuna."""

import optuna
import pytest

from hpsearch.search.optuna_private import RandomStates
from hpsearch.study_file import methods
from hpsearch.study_file.methods import Method


@pytest.mark.parametrize("kind", ["random", "tpe"])
def test_a_sampler_with_shared_random_states_draws_what_its_seed_says(kind):
    states, method = RandomStates(), Method(kind=kind)
    own, shared = optuna.create_study(), optuna.create_study()
    for seed in range(25):
        own.sampler = methods.sampler(method, seed)
        shared.sampler = methods.sampler(method, None)
        states.seed(shared.sampler, seed)
        assert _drawn(shared) == _drawn(own)


def _drawn(study: optuna.Study) -> tuple[float, object]:
    trial = study.ask()
    x, letter = trial.suggest_float("x", 0, 1), trial.suggest_categorical("letter", "abc")
    study.tell(trial, x)
    return x, letter
