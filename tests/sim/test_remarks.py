"""Samplers, pruners and the model say nothing of their own, whatever the losses are."""

import logging
import math
from collections.abc import Mapping
from typing import Any

import optuna
import pytest

from support.studies.small import Bowl, Simulation, budget_of, search_by, spec_with

EXTREMES = [1e308, -1e308, math.inf, 1.0, math.nan, 1e200, -1e150, 5e-324, -math.inf]
CHOICES = {"type": "categorical", "choices": ["a", "b"]}
NUMBER = {"type": "float", "low": 0, "high": 1}
SPACE = {"x": NUMBER, "y": NUMBER, "c": CHOICES}


class Extreme(Bowl):
    """Losses at the ends of what floats can be."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        return {"loss": EXTREMES[seed % len(EXTREMES)] / resource}


@pytest.mark.parametrize(
    ("sampler", "pruner"),
    [
        ("random", "median"),
        ("random", "wilcoxon"),
        ("random", {"kind": "patient", "wrapped_pruner": "median", "patience": 1}),
        ("cmaes", "promotion"),
        ("tpe", "hyperband"),
        ("curve_gp", "promotion"),
    ],
)
def test_a_method_makes_no_remarks(sampler, pruner, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("optuna"), "propagate", True)  # to where tests look
    spec = spec_with(space=SPACE, budget=budget_of(25), search=search_by(sampler, pruner))
    verbosity = optuna.logging.get_verbosity()
    Simulation(
        spec, curves=Bowl() if sampler == "cmaes" else Extreme()
    ).run()  # any warning would be an error
    assert [record for record in caplog.records if record.name.startswith("optuna")] == []
    assert optuna.logging.get_verbosity() == verbosity
