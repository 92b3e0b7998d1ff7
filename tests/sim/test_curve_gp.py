"""The curve model as a sampler: the same from the same history, on any kind of space, and better
than chance."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.running import simulate
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.curve_model.curves import MOST_ROWS, CurveReader, ShownCurve
from hpsearch.search.curve_model.model import CurveModel
from hpsearch.search.ranking.selection import rank
from support.studies.small import Bowl, brain, budget_of, history_for, search_by, spec_with

SPACE = {name: {"type": "float", "low": 0.0, "high": 1.0} for name in ("x", "y", "z")}
BUDGET = budget_of(30, 27)


@dataclass
class Valley(Bowl):
    """A bowl in three dimensions."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        best = {"x": 0.3, "y": 0.8, "z": 0.55}
        return {
            "loss": sum((params[name] - at) ** 2 for name, at in best.items()) + 1 / (1 + resource)
        }


@dataclass
class Hidden(Bowl):
    """Good configurations lie behind a condition: with momentum, near 0.85, and a learning rate of
    a half."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        loss = (params["x"] - 0.5) ** 2 + (
            0.4 if params["optimizer"] != "sgd" else (params["momentum"] - 0.85) ** 2
        )
        return {"loss": loss + 1 / (1 + resource)}


def spec_for(sampler: str = "curve_gp", seed: int = 0, **changes: Any) -> Any:
    return spec_with(
        **{
            "space": SPACE,
            "budget": BUDGET,
            "seed": seed,
            "search": {"sampler": sampler},
            **changes,
        }
    )


def best(history: History) -> float:
    return rank(history.trials, "minimize")[0].value


# --------------------------------------------------------------------------------------------- the
# same again


# -------------------------------------------------------------------------------------------------
# evidence


def test_a_paused_trial_is_evidence_at_its_resource():
    spec = spec_for()
    history = history_for(spec)
    paused = Trial(0, State.PAUSED, {"x": 0.1, "y": 0.2, "z": 0.3}, value=0.5, resource=3.0)
    paused.reports = {r: ReportRecord(0, r, 1 / r, {"loss": 1 / r}) for r in (1.0, 2.0, 3.0)}
    history.add_trial(paused)
    search = brain(spec, history)._context.searcher
    assert search._forecast is not None
    (curve,) = search._forecast.reader.curves()
    assert curve.shares[-1] == pytest.approx(3 / 27, abs=1e-6)
    assert curve.values[-1] == pytest.approx(1 / 3)


def test_a_thousand_trials_are_read_once(monkeypatch):
    spec = spec_for(budget=budget_of(2000, 27))
    history, rng = history_for(spec), np.random.default_rng(0)
    for number in range(1000):
        params = dict(zip("xyz", map(float, rng.random(3)), strict=True))
        trial = Trial(number, State.COMPLETE, params, value=params["x"] + 0.1, resource=27.0)
        trial.reports = {
            r: ReportRecord(number, r, params["x"] + 1 / r, {}) for r in (1.0, 3.0, 9.0, 27.0)
        }
        history.add_trial(trial)
    search = brain(spec, history)._context.searcher
    read, rows = [], []
    curve, condition = CurveReader.read, CurveModel.condition

    def noted(self: CurveReader, trial: Trial) -> ShownCurve | None:
        read.append(trial.number)
        return curve(self, trial)

    monkeypatch.setattr(CurveReader, "read", noted)
    monkeypatch.setattr(
        CurveModel, "condition", lambda self, r: rows.append(len(r)) or condition(self, r)
    )
    for number in (1000, 1001):
        search.proposals.propose(history.add_trial(Trial(number, State.QUEUED, {})))
    assert sum(number < 1000 for number in read) == 1000, (
        "the second decision reads no old trial again"
    )
    assert max(rows) <= MOST_ROWS


# ----------------------------------------------------------------------------------------- units


@dataclass
class Scaled:
    """Curves whose resource is counted in another unit."""

    of: Bowl
    scale: float

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        return self.of.measure(params, seed, resource / self.scale)

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return self.of.seconds(params, resource / self.scale)


def course(unit: str, scale: int, sampler: str, pruner: str) -> list[tuple[Any, ...]]:
    """What a study of 24 epochs proposed and pruned, with epochs counted in another unit."""
    spec = spec_for(
        sampler,
        budget={"trials": 20, "per_trial": {unit: 24 * scale, "report_every": scale}},
        search=search_by(sampler, pruner),
    )
    trials = simulate(spec, Scaled(Valley(), scale), 2).trials
    return [(trial.params, trial.state, trial.resource / scale, trial.rung) for trial in trials]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pruner",
    [
        "promotion",
        pytest.param("none", marks=pytest.mark.thorough),
        pytest.param("median", marks=pytest.mark.thorough),
        "successive_halving",
    ],
)
@pytest.mark.parametrize("sampler", ["curve_gp", "tpe", "random"])
def test_the_unit_of_the_budget_changes_nothing(sampler, pruner):
    in_epochs = course("epochs", 1, sampler, pruner)
    assert course("steps", 1000, sampler, pruner) == in_epochs
    assert course("tokens", 640_000, sampler, pruner) == in_epochs


# ------------------------------------------------------------------------------------------ better
# than chance


@pytest.mark.thorough
def test_it_finds_better_configurations_than_random_search():
    ours, random = (
        [
            best(simulate(spec_for(seed=seed, search=search_by(sampler)), Valley(), 2))
            for seed in range(3)
        ]
        for sampler in ("curve_gp", "random")
    )
    floor = 1 / 28
    assert np.mean(ours) - floor < 0.4 * (np.mean(random) - floor)


@pytest.mark.thorough
def test_what_lies_behind_a_condition_is_found_sooner_than_by_random_search():
    space = {
        "x": {"type": "float", "low": 0.0, "high": 1.0},
        "optimizer": {"type": "categorical", "choices": ["adam", "lion", "sgd", "adafactor"]},
        "momentum": {"type": "float", "low": 0.0, "high": 1.0, "when": {"optimizer": "sgd"}},
    }
    found: dict[str, list[int]] = {}
    for sampler in ("curve_gp", "random"):
        search = search_by(sampler)
        studies = [
            simulate(spec_for(seed=s, space=space, search=search), Hidden(), 2) for s in range(6)
        ]
        floor = 1 / 28 + 0.02
        found[sampler] = [
            next((t.number for t in s.trials if (t.value or 1) < floor), 30) for s in studies
        ]
        assert all(
            ("momentum" in t.params) == (t.params["optimizer"] == "sgd")
            for s in studies
            for t in s.trials
        )
    assert np.mean(found["curve_gp"]) < 0.8 * np.mean(found["random"])
