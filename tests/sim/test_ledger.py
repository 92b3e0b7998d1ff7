"""The ledger over a thousand random studies: what is spent stays within the budget, and every
second is accounted for.

Workers start slowly and are lost, trials diverge, are pruned, time out and are repeated, and speeds
differ by orders of magnitude.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.brain.budget.ledger import charged_gpus
from hpsearch.domain import events as ev
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome
from support.studies.drawn import assert_same_books
from support.studies.small import Bowl, Simulation, budget_of, search_by, spec_with
from support.thoroughness import examples

HISTORIES = examples(600)
PARTS = 10
PRUNERS = ("none", {"kind": "promotion", "eta": 3}, {"kind": "median", "n_startup_trials": 1})


@dataclass
class Uneven(Bowl):
    """Curves whose speeds differ from configuration to configuration by a random factor."""

    seed: int = 0
    spread: float = 0.0
    """The standard deviation of the factor's logarithm."""

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        factor = math.exp(random.Random(f"{self.seed} {params['x']}").gauss(0.0, self.spread))
        return super().seconds(params, resource) * factor


def random_study(seed: int) -> tuple[Simulation, float]:
    """A study with whatever can befall it, and its limit in GPU-seconds."""
    draw = random.Random(seed)
    limit = math.exp(draw.uniform(math.log(20.0), math.log(1200.0)))
    per_trial: dict[str, Any] = {"epochs": draw.choice([3, 9])}
    if draw.random() < 0.3:
        per_trial["time_limit"] = draw.uniform(50.0, 500.0)
    budget: dict[str, Any] = {"per_trial": per_trial, "cost_per_gpu_hour": 2.0}
    if draw.random() < 0.5:
        budget["gpu_hours"] = limit / 3600
    else:
        budget["cost"] = limit / 3600 * 2.0
    if draw.random() < 0.4:
        budget["trials"] = draw.randint(1, 20)
    search: dict[str, Any] = {"sampler": "random", "pruner": draw.choice(PRUNERS)}
    if draw.random() < 0.3:
        search["confirm"] = {"top": 2, "seeds": 2}
    spec = spec_with(budget=budget, search=search, seed=seed)
    curves = Uneven(10.0, draw.choice([math.inf, 0.7]), seed, draw.choice([0.0, 0.3, 1.5]))
    losses = tuple(sorted(draw.uniform(0.0, limit) for _ in range(draw.randint(0, 6))))
    study = Simulation(
        spec,
        curves=curves,
        workers=draw.randint(1, 6),
        losses=losses,
        gpus=draw.choice([0.25, 1.0, 1.0, 8.0]),
        cold_s=draw.choice([0.0, 0.0, 5.0, 40.0]),
        warm_s=draw.choice([0.0, 0.1, 3.0]),
    )
    return study, limit


def spent(history: History) -> float:
    return sum(attempt.gpu_seconds for trial in history.trials for attempt in trial.attempts)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_random_study_spends_more_than_its_budget_and_every_attempt_is_on_the_books(part):
    for seed in range(part, HISTORIES, PARTS):
        simulation, limit = random_study(seed)
        books, history = simulation.study.spending, simulation.history
        while not simulation.study.finished:
            simulation.tick()
            reserved = sum(books.ledger.reserved.values())
            assert books.ledger.spent + reserved <= limit * (1 + 1e-9), (
                f"seed {seed}: more is promised than there is"
            )
        simulation.run()
        assert spent(history) <= limit, f"seed {seed}"
        assert books.ledger.spent == pytest.approx(spent(history)), f"seed {seed}"
        assert not books.ledger.reserved, f"seed {seed}: something is reserved for nobody"
        for trial in history.trials:
            charged = sum(attempt.gpu_seconds for attempt in trial.attempts)
            assert trial.gpu_seconds == pytest.approx(charged), f"seed {seed}, trial {trial.number}"
            assert trial.cost is None or trial.cost == pytest.approx(charged / 3600 * 2.0), (
                f"seed {seed}"
            )
            assert all(a.outcome is not None and a.ended is not None for a in trial.attempts), (
                f"seed {seed}"
            )


def save_seldom(executor: SimulatedExecutor, every: float) -> None:
    """Let attempts save at each multiple of `every` only; never if it is infinite."""
    save = executor._save
    executor._save = lambda run: None if run.resource % every else save(run)  # type: ignore[method-assign]


class Checked:
    """Compares what is reserved at each launch of a study with what the attempt may cost."""

    def __init__(self, simulation: Simulation, begun: Counter[str]) -> None:
        self._trials = simulation.history.trials
        self._share = charged_gpus(simulation.executor._gpus)
        self._launch = simulation.executor.launch
        self._begun = begun
        """Where attempts have begun: at a new checkpoint, at an old one, or with none."""
        simulation.executor.launch = self.launch  # type: ignore[method-assign]

    def launch(self, order: ev.Launch) -> None:
        trial, begin = self._trials[order.trial], float(order.resume_from or 0.0)
        attempt = trial.attempts[-1]
        assert attempt.start_resource == begin
        if trial.speed and not order.time_limit_s:
            worst = 1.25 * (order.until - begin) / trial.speed * self._share
            assert attempt.reserved_gpu_seconds >= worst - 1e-6, trial
            self._begun["new" if begin == trial.resource else "old" if begin else "none"] += 1
        self._launch(order)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_an_attempt_may_cost_from_where_it_begins_is_reserved_before_it_starts(part):
    """Workers are lost, and trials go on from new checkpoints, from old ones and from none."""
    begun = Counter[str]()
    for seed in range(part, HISTORIES, PARTS):
        simulation, _ = random_study(seed)
        draw, executor = random.Random(-seed), simulation.executor
        save_seldom(executor, draw.choice([1.0, 2.0, 3.0, 4.0, math.inf]))
        for at in range(draw.randint(0, 9)):
            executor._at(draw.uniform(0.0, 50.0 * (at + 1)), None)
        Checked(simulation, begun)
        simulation.run()
    assert HISTORIES < 500 or begun.keys() == {"new", "old", "none"}


@pytest.mark.parametrize("part", range(PARTS))
def test_whoever_takes_a_study_up_plans_with_the_same_costs_as_the_driver_before(part):
    for seed in range(part, HISTORIES // 4, PARTS):
        simulation, _ = random_study(seed)
        for _ in range(random.Random(seed).randint(1, 60)):
            if simulation.study.finished:
                break
            simulation.tick()
        assert_same_books(simulation.study, simulation.executor._gpus)


@pytest.mark.parametrize("share", [0.25, 1.0, 8.0])
def test_a_study_that_is_taken_up_again_tries_as_much_with_its_budget(share):
    spec = spec_with(
        budget=budget_of(gpu_hours=0.6 * share), search=search_by(), resources={"gpu": share}
    )
    whole = Simulation(spec, gpus=share).run()
    cut = Simulation(spec, gpus=share)
    for _ in range(60):
        cut.tick()
    resumed = Simulation(spec, cut.history, start=cut.executor.now, gpus=share).run()
    assert len(resumed.history.trials) >= 0.9 * len(whole.history.trials)
    assert spent(resumed.history) <= 0.6 * share * 3600


@pytest.mark.thorough
def test_the_random_studies_meet_everything_that_can_befall_a_trial():
    outcomes: set[Outcome | None] = set()
    states: set[State] = set()
    reasons = set()
    for seed in range(60):
        simulation, _ = random_study(seed)
        history = simulation.run().history
        outcomes |= {attempt.outcome for trial in history.trials for attempt in trial.attempts}
        states |= {trial.state for trial in history.trials}
        reasons.add(history.study.reason)
    assert outcomes >= {
        *(Outcome.COMPLETE, Outcome.PAUSED, Outcome.PRUNED, Outcome.FAILED, Outcome.LOST),
    }
    assert states == {State.COMPLETE, State.PRUNED, State.FAILED}
    assert "the budget left is too small for another trial" in reasons
