"""Expectations of complete trials: their results, those of outliers too."""

from collections.abc import Mapping
from typing import Any

import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.selection import likely_range, rank
from support.studies.small import Bowl, Simulation, budget_of, search_by, spec_with
from support.thoroughness import examples


class WithOutliers(Bowl):
    """Curves of which a fifth ends anywhere, whatever their neighbours do."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        usual = super().measure(params, seed, resource)["loss"]
        if seed % 5:
            return {"loss": usual}
        return {"loss": usual + (-1) ** (seed % 2) * 10.0 ** (seed % 7 - 3)}


@pytest.mark.parametrize("pruner", ["none", "promotion"])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_complete_trials_are_in_the_order_of_their_results_which_their_intervals_hold(
    pruner, direction
):
    for seed in range(examples(10)):
        spec = spec_with(
            seed=seed,
            objective={"metric": "loss", "direction": direction},
            budget=budget_of(20),
            search=search_by("tpe", pruner),
        )
        history = Simulation(spec, curves=WithOutliers()).run().history
        complete = [each for each in history.trials if each.state is State.COMPLETE]
        for trial in complete:
            low, high = likely_range(trial)
            result = trial.reports[9.0].value
            assert result is not None
            assert low <= result == trial.expected <= high
        ranked = [each.trial.reports[9.0].value for each in rank(complete, direction)]
        assert ranked == sorted(ranked, reverse=direction == "maximize")
