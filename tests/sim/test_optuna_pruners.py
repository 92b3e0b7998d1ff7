"""Optuna's pruners in a study, each with its arguments, through the brain on a virtual clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import optuna
import pytest

from benchmarks.simulation.running import simulate
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.study_file.reading import advice
from support.studies.small import Bowl, budget_of, search_by, spec_with

PRUNERS: dict[str, dict[str, Any]] = {
    "median": {
        "kind": "median",
        "n_startup_trials": 3,
        "n_warmup_steps": 1,
        "interval_steps": 2,
        "n_min_trials": 2,
    },
    "percentile": {"kind": "percentile", "percentile": 25.0, "n_startup_trials": 3},
    "successive_halving": {"kind": "successive_halving", "min_resource": 1, "reduction_factor": 2},
    "successive_halving, steps known": {"kind": "successive_halving"},
    "hyperband": {"kind": "hyperband", "min_resource": 1, "max_resource": 9, "reduction_factor": 3},
    "hyperband, steps known": {"kind": "hyperband"},
    "threshold": {"kind": "threshold", "upper": 0.3, "n_warmup_steps": 3},
    "patient": {
        "kind": "patient",
        "wrapped_pruner": {"kind": "median", "n_startup_trials": 3},
        "patience": 1,
    },
    "patient alone": {"kind": "patient", "wrapped_pruner": None, "patience": 1},
    "wilcoxon": {"kind": "wilcoxon", "p_threshold": 0.2, "n_startup_steps": 2},
}


@dataclass
class Rebound(Bowl):
    """Curves that are the worse the further from the bowl's floor, and rise again late where x is
    above 0.8."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        loss = super().measure(params, seed, resource)["loss"]
        return {"loss": loss + (0.3 * resource if params["x"] > 0.8 else 0.0)}


def run(pruner: dict[str, Any], sampler: str = "random") -> History:
    budget = budget_of(30)
    return simulate(spec_with(budget=budget, search=search_by(sampler, pruner)), Rebound(), 2)


@pytest.mark.parametrize("pruner", PRUNERS.values(), ids=PRUNERS)
def test_every_pruner_of_optuna_stops_weak_trials_and_completes_good_ones(pruner):
    trials = run(pruner).trials
    pruned = [trial for trial in trials if trial.state is State.PRUNED]
    complete = [trial for trial in trials if trial.state is State.COMPLETE]
    assert len(pruned) + len(complete) == len(trials) == 30
    assert pruned
    assert all(trial.resource < 9 for trial in pruned), "a pruned trial is stopped early"
    assert min(t.value or 1.0 for t in complete) < min(t.value or 1.0 for t in pruned)


def test_pruners_that_no_test_names_do_not_exist():
    known = {name for name in optuna.pruners.__all__ if name not in ("BasePruner", "NopPruner")}
    tested = {
        "".join(part.title() for part in each["kind"].split("_")) + "Pruner"
        for each in PRUNERS.values()
    }
    assert tested == known


def test_a_first_wave_that_a_median_cannot_prune_is_told_with_the_remedy():
    (told,) = advice(spec_with(search={"pruner": {"kind": "median", "n_startup_trials": 3}}))
    assert "finished trials only" in told
    assert "promotion compares from the first rung on" in told
    assert not advice(spec_with(search={"pruner": "promotion"}))
