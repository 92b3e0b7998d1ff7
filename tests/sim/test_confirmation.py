"""Confirmation with real noise: who wins, what it costs, and what its intervals are worth."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpsearch.brain.budget.headroom import Headroom
from hpsearch.brain.budget.ledger import Spending
from hpsearch.brain.confirmation import Confirmation
from hpsearch.brain.reopening import reopen
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.ranking.repeats import Repeats, runs_of
from hpsearch.search.ranking.selection import rank
from hpsearch.search.ranking.verdicts.question import FURTHER
from hpsearch.study_file.models import StudySpec
from support import thoroughness
from support.studies.small import (
    Bowl,
    Simulation,
    brain,
    budget_of,
    history_for,
    search_by,
    spec_with,
)

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
THOROUGH = pytest.mark.thorough


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark that compares studies with and without confirmation."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("confirm")


def nothing_new() -> None:
    """What is expected of the trials stands in their records already."""


def raced(
    truths: list[float], top: int, seeds: int, draw: np.random.Generator, slots: int = 1
) -> History:
    """A race between complete trials of these true losses, with noise of standard deviation 1, on
    some slots."""
    spec = spec_with(search={"sampler": "random", "confirm": {"top": top, "seeds": seeds}})
    history = history_for(spec)
    for number, value in enumerate(truths):
        history.add_trial(Trial(number, State.COMPLETE, {}, value=value, resource=9.0))
    race = Confirmation(spec, history, nothing_new)
    while True:
        running = []
        while len(running) < slots and (leader := fresh(race).next_leader()) is not None:
            repeat = Trial(
                len(history.trials), State.RUNNING, {}, role=Role.CONFIRM, repeats=leader.number
            )
            running.append(history.add_trial(repeat))
        if not running:
            return history
        for repeat in running:
            assert repeat.repeats is not None
            repeat.state, repeat.resource = State.COMPLETE, 9.0
            repeat.value = truths[repeat.repeats] + float(draw.normal())


def test_the_race_is_between_those_of_which_most_is_expected_and_not_the_lucky():
    spec = spec_with(search={"sampler": "random", "confirm": {"top": 2, "seeds": 1}})
    history = history_for(spec)
    seen_and_expected = [(0.1, 0.9), (0.6, 0.3), (0.5, 0.4), (0.2, 0.8)]
    for number, (value, expected) in enumerate(seen_and_expected):
        made = Trial(number, State.COMPLETE, {}, value=value, resource=9.0, expected=expected)
        made.expected_deviation = 0.05
        history.add_trial(made)
    race = Confirmation(spec, history, nothing_new)
    repeated = []
    while (leader := fresh(race).next_leader()) is not None:
        repeated.append(leader.number)
        made = Trial(len(history.trials), State.COMPLETE, {}, value=0.5, role=Role.CONFIRM)
        made.repeats = leader.number
        history.add_trial(made)
    assert repeated == [1, 2]


def repeats_of(history: History, number: int) -> int:
    return sum(trial.repeats == number for trial in history.trials)


@pytest.mark.thorough
def test_with_the_same_budget_the_confirmed_winner_is_truly_better_than_the_raw_one(bench):
    found = bench.compare(noise=0.1, studies=120, full_trials=40)
    gain, error = found["gain"]
    assert gain > 2 * error, found
    assert found["confirmed_gpu_seconds"] <= 40 * bench.EPOCHS * bench.SECONDS_PER_EPOCH
    assert found["confirmed_flatters"] < found["raw_flatters"] / 2


@pytest.mark.thorough
@pytest.mark.parametrize("top", [2, 3, pytest.param(5, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("spread", [0.0, pytest.param(1.0, marks=pytest.mark.thorough), 3.0])
def test_the_winners_90_percent_interval_holds_one_more_training_as_often_as_it_claims(top, spread):
    draw, hits, races = np.random.default_rng(top), 0, 1000
    for _ in range(races):
        truths = sorted(draw.normal(size=top) * spread)
        history = raced(truths, top, 3, draw)
        winner = rank(history.trials, "minimize")[0]
        assert winner.confirmed is not None
        assert winner.confirmed.low is not None
        assert winner.confirmed.high is not None
        again = truths[winner.trial.number] + draw.normal()
        hits += winner.confirmed.low <= again <= winner.confirmed.high
    least = 0.85 if spread else 0.82  # the first one of equals is the lucky one
    assert least <= hits / races <= 0.95


def test_what_a_clearly_beaten_leader_has_left_goes_to_those_that_may_still_win():
    history = raced([0.0, 0.3, 30.0], top=3, seeds=4, draw=np.random.default_rng(5))
    assert repeats_of(history, 2) <= 2
    assert repeats_of(history, 0) + repeats_of(history, 1) > 8
    assert sum(trial.role is Role.CONFIRM for trial in history.trials) <= 12


def test_a_decided_race_ends_once_its_winner_has_all_its_repeats():
    history = raced([0.0, 40.0, 50.0], top=3, seeds=4, draw=np.random.default_rng(2))
    assert repeats_of(history, 0) == 4
    assert repeats_of(history, 1) <= 2
    assert repeats_of(history, 2) <= 2


def test_free_slots_repeat_side_by_side():
    history = raced([0.0, 0.1, 0.2], top=3, seeds=3, draw=np.random.default_rng(0), slots=9)
    assert [repeats_of(history, number) for number in range(3)] == [3, 3, 3]


def test_a_leader_whose_repeats_fail_is_out_of_the_race():
    spec = spec_with(search={"sampler": "random", "confirm": {"top": 2, "seeds": 3}})
    history = history_for(spec)
    history.add_trial(Trial(0, State.COMPLETE, {}, value=0.1, resource=9.0))
    history.add_trial(Trial(1, State.COMPLETE, {}, value=0.2, resource=9.0))
    history.add_trial(
        Trial(2, State.FAILED, {}, role=Role.CONFIRM, repeats=0, error_kind=ErrorKind.DIVERGED)
    )
    leader = fresh(Confirmation(spec, history, nothing_new)).next_leader()
    assert leader is not None
    assert leader.number == 1


def test_only_trials_that_were_trained_in_full_are_repeated():
    spec = spec_with(
        search={
            "sampler": "random",
            "pruner": {"kind": "promotion", "first_rung": 3},
            "confirm": {"top": 4, "seeds": 2},
        },
        budget=budget_of(6),
    )
    done = Simulation(spec, curves=Bowl()).run()
    repeats = [trial for trial in done.history.trials if trial.role is Role.CONFIRM]
    originals = {repeat.repeats: done.history.trials[repeat.repeats or 0] for repeat in repeats}
    assert originals
    assert all(original.state is State.COMPLETE for original in originals.values())
    assert all(repeat.state is State.COMPLETE and repeat.resource == 9 for repeat in repeats)


@pytest.mark.parametrize(
    "budget",
    [
        {"gpu_hours": 0.5},
        {"cost": 1.0, "cost_per_gpu_hour": 2.0},
        {"wall_clock": "15m"},
        {"trials": 15},
    ],
)
def test_every_kind_of_budget_leaves_enough_for_the_repeats(budget):
    spec = spec_with(
        search={"sampler": "random", "confirm": {"top": 2, "seeds": 2}},
        budget={**budget, "per_trial": {"epochs": 9}},
    )
    done = Simulation(spec, workers=2).run()
    standing = Repeats(runs_of(done.history.trials), "minimize")
    assert len(standing.means) == 2
    given = [repeats_of(done.history, number) for number in standing.means]
    if spec.budget.wall_clock_s is None:
        assert all(number >= 2 for number in given)
    else:  # what is kept back is what repeats are expected to take, and these may take longer
        assert sum(given) >= 3
    if spec.budget.trials is not None:
        assert given == [2, 2], "there is no time or money to use up"
    assert sum(trial.role is not Role.CONFIRM for trial in done.history.trials) >= 8


def test_slots_that_the_search_needs_no_more_confirm_who_is_likely_to_lead():
    budget = budget_of(40)
    spec = spec_with(search={"sampler": "random", "confirm": {"top": 3, "seeds": 3}}, budget=budget)
    done = Simulation(spec, workers=8).run()
    attempts = [(trial, attempt) for trial in done.history.trials for attempt in trial.attempts]
    search_ends = max(
        attempt.ended or 0.0 for trial, attempt in attempts if trial.role is not Role.CONFIRM
    )
    early = {
        trial.repeats
        for trial, attempt in attempts
        if trial.role is Role.CONFIRM and attempt.started < search_ends
    }
    leaders = rank(
        [trial for trial in done.history.trials if trial.role is not Role.CONFIRM], "minimize"
    )[:3]
    assert len(early & {leader.trial.number for leader in leaders}) >= 2
    assert repeats_of(done.history, rank(done.history.trials, "minimize")[0].trial.number) >= 3


def confirmed_studies(pruner: Any) -> list[tuple[StudySpec, Simulation]]:
    """Studies with budgets of GPU time, or of trials, whose leaders are confirmed."""
    found = []
    for seed in range(thoroughness.examples(30)):
        limit = {"trials": 6 + seed} if seed % 2 else {"gpu_hours": 0.1 + seed / 50}
        search = search_by("random", pruner, confirm={"top": 3, "seeds": 2})
        spec = spec_with(seed=seed, search=search, budget={**limit, "per_trial": {"epochs": 9}})
        found.append((spec, Simulation(spec, workers=1 + seed % 5, losses=(40.0 * seed,))))
    return found


def fresh(race: Confirmation) -> Confirmation:
    """The race, with the contenders of this moment."""
    race.refresh()
    return race


def waits_for_race(simulation: Simulation) -> bool:
    """True if the search waits for the race, or did so when the study ended."""
    known = simulation.history.study.confirmation
    return known is not None and known.search_waits


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pruner",
    ["promotion", pytest.param("none", marks=THOROUGH), pytest.param("median", marks=THOROUGH)],
)
def test_a_budget_of_trials_pays_as_many_repeats_as_promised_and_no_search_beside_the_race(pruner):
    for spec, simulation in confirmed_studies(pruner):
        done = simulation.run()
        roles = [trial.role for trial in done.history.trials]
        if spec.budget.trials is not None:
            assert roles.count(Role.CONFIRM) <= 6, spec.seed
            assert waits_for_race(done), spec.seed


@pytest.mark.parametrize(
    "pruner",
    ["promotion", pytest.param("none", marks=THOROUGH), pytest.param("median", marks=THOROUGH)],
)
def test_while_a_leader_misses_repeats_that_fit_the_search_waits(pruner):
    for spec, simulation in confirmed_studies(pruner):
        study, trials = simulation.study, simulation.history.trials
        while not study.finished:
            begun_before = waits_for_race(simulation)
            simulation.tick()
            if not (begun_before and waits_for_race(simulation)):
                continue
            decisions = simulation.written[-1].decisions
            begun = [each.trial for each in decisions if each.kind in ("start", "promote")]
            roles = {trials[number].role for number in begun}
            assert roles <= {Role.CONFIRM}, f"seed {spec.seed}: the search went on"
        for number in range(len(trials)):
            assert repeats_of(simulation.history, number) <= FURTHER * 2, spec.seed


def test_a_race_that_was_interrupted_goes_on_as_a_race():
    spec = spec_with(
        search={"sampler": "random", "confirm": {"top": 3, "seeds": 3}},
        budget=budget_of(gpu_hours=0.5),
    )
    simulation = Simulation(spec)
    while sum(trial.role is Role.CONFIRM for trial in simulation.history.trials) < 3:
        simulation.tick()
    before = len(simulation.history.trials)
    resumed = Simulation(spec, simulation.history, start=simulation.executor.now)
    assert resumed.study.phase is Phase.CONFIRMING
    done = resumed.run().history
    leaders = {trial.repeats for trial in done.trials[:before] if trial.role is Role.CONFIRM}
    after = [trial.role for trial in done.trials[before:]]
    at_once = after.index(Role.SEARCH) if Role.SEARCH in after else len(after)
    assert at_once >= 2 * len(leaders) - 3, "each has at least two before the race can be decided"


def test_with_more_budget_the_search_goes_on_and_new_leaders_are_confirmed():
    def spec(trials: int) -> StudySpec:
        search = {"sampler": "random", "confirm": {"top": 2, "seeds": 2}}
        return spec_with(search=search, budget=budget_of(trials))

    first = Simulation(spec(8)).run()
    before = sum(trial.role is Role.CONFIRM for trial in first.history.trials)
    assert 0 < before <= 4
    reopen(first.history)
    more = Simulation(spec(40), first.history, start=first.executor.now).run()
    assert sum(trial.role is not Role.CONFIRM for trial in more.history.trials) == 40
    searched = [trial for trial in more.history.trials if trial.role is not Role.CONFIRM]
    for leader in rank(searched, "minimize")[:2]:
        assert repeats_of(more.history, leader.trial.number) == 2


@pytest.mark.parametrize(
    "pruner", ["promotion", "median", {"kind": "percentile", "percentile": 50.0}, "wilcoxon"]
)
def test_new_trials_are_compared_with_the_search_and_not_with_repeats(pruner):
    search = search_by("random", pruner, confirm={"top": 2, "seeds": 5})
    spec = spec_with(search=search, budget=budget_of(20))
    history = history_for(spec)
    for number in range(18):
        role, loss = (Role.SEARCH, 0.5) if number < 8 else (Role.CONFIRM, 0.1)
        trial = Trial(
            number, State.COMPLETE, {"x": 0.5}, value=loss, resource=9.0, rung=1, role=role
        )
        trial.reports = {
            float(n): ReportRecord(number, float(n), loss, {"loss": loss}) for n in range(1, 10)
        }
        history.add_trial(trial)
    study = brain(spec, history)
    study.begin(0.0)
    study.on_event(ev.SlotUp("s0", "node", "cpu", 1.0), 0.0)
    (launch,) = study.on_tick(0.0)
    for resource in range(1, 9):
        study.on_event(
            ev.Reported(launch.trial, 1, float(resource), {"loss": 0.3}), float(resource)
        )
        assert history.trials[launch.trial].state is State.RUNNING, (
            "it is better than all that were searched"
        )


def test_samplers_that_count_good_trials_do_not_count_repeats():
    spec = spec_with(search={"sampler": "tpe"}, budget=budget_of(20))
    history = Simulation(spec).run().history
    drawn = []
    for repeats in (0, 9):
        for _ in range(repeats):
            trial = Trial(
                len(history.trials),
                State.COMPLETE,
                {"x": 0.9},
                value=0.0,
                resource=9.0,
                role=Role.CONFIRM,
            )
            trial.repeats, trial.distributions = 0, history.trials[0].distributions
            history.add_trial(trial)
        study = brain(spec, history)
        view = study._context.searcher.proposals.view_for(history.trials[-1])
        drawn.append([trial.number for trial in view.get_trials()])
    assert drawn[0] == drawn[1]


def test_while_many_trials_run_no_leader_is_sure():
    spec = spec_with(search={"sampler": "random", "confirm": {"top": 3, "seeds": 1}})
    history = history_for(spec)
    for number in range(4):
        history.add_trial(Trial(number, State.COMPLETE, {}, value=float(number), resource=9.0))
    race = Confirmation(spec, history, nothing_new)
    assert fresh(race).early_leader(running=6) is None
    assert (first := fresh(race).early_leader(running=5)) is not None
    assert first.number == 0
    history.add_trial(Trial(4, State.RUNNING, {}, role=Role.CONFIRM, repeats=0))
    assert fresh(race).early_leader(running=5) is None
    assert (second := fresh(race).early_leader(running=3)) is not None
    assert second.number == 1


@dataclass
class Late(Bowl):
    """Errors of configurations that predict the majority class until they have learnt something.

    Only those whose x is within `reach` of 0.4 learn anything, and show it after 3 of 9 epochs.
    """

    full_s: float = 60.0
    reach: float = 0.0

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        distance = abs(params["x"] - 0.4)
        if distance >= self.reach or resource < 3:
            return {"loss": MAJORITY}
        luck = (seed % 1000) / 1e5
        return {"loss": MAJORITY - 0.05 * (resource - 2) + 0.2 * distance + luck}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource / 9 * self.full_s


MAJORITY = 0.4722
TEN_MINUTES = budget_of(wall_clock="10m")


def late_learners(
    reach: float, workers: int, full_s: float = 60.0, budget: Mapping[str, Any] = TEN_MINUTES
) -> History:
    search = {"sampler": "random", "confirm": {"top": 2, "seeds": 2}}
    spec = spec_with(seed=3, budget=dict(budget), search=search)
    return Simulation(spec, curves=Late(full_s=full_s, reach=reach), workers=workers).run().history


def used(history: History, workers: int, limit_s: float = 600.0) -> float:
    """The share of the time of all workers in which they trained."""
    attempts = [attempt for trial in history.trials for attempt in trial.attempts]
    return sum(attempt.gpu_seconds for attempt in attempts) / (limit_s * workers)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("full_s", [60.0])
@pytest.mark.parametrize("reach", [0.0, 0.15, 0.3])
def test_what_has_learnt_nothing_is_not_repeated_and_ten_minutes_are_used(reach, full_s, workers):
    history = late_learners(reach, workers, full_s)
    trials = history.trials
    repeated = [trials[trial.repeats] for trial in trials if trial.repeats is not None]
    assert all(trial.value is not None and trial.value < MAJORITY for trial in repeated)
    assert all(trial.state is State.COMPLETE for trial in repeated)
    learnt = [trial for trial in searched(history) if (trial.value or 1.0) < MAJORITY]
    complete = [trial for trial in searched(history) if trial.state is State.COMPLETE]
    assert complete
    assert bool(repeated) == any(trial in learnt for trial in complete)
    assert used(history, workers) > 0.9


def test_few_trials_of_which_none_learns_are_not_repeated():
    for workers in (1, 2):
        history = late_learners(0.0, workers, 130.0, {"trials": 8, **TEN_MINUTES})
        assert all(trial.repeats is None for trial in history.trials)
        assert any(trial.state is State.COMPLETE for trial in history.trials)
        most = 8 if workers == 2 else 5
        assert len(history.trials) == most, "no rung decides, so each one goes all the way"


@pytest.mark.parametrize("workers", [1, 2])
def test_ten_minutes_for_few_trials_are_used(workers):
    history = late_learners(0.3, workers, 130.0, {"trials": 8, **TEN_MINUTES})
    assert used(history, workers) > 0.85, "one full training takes more than a fifth of the time"


def test_nothing_is_kept_back_before_a_trial_is_complete():
    spec = spec_with(
        budget=TEN_MINUTES, search={"sampler": "random", "confirm": {"top": 3, "seeds": 2}}
    )
    history = history_for(spec)
    race = Confirmation(spec, history, nothing_new)
    assert fresh(race).repeats_to_come == 0
    history.add_trial(Trial(0, State.PAUSED, {}, value=0.1, resource=3.0))
    assert fresh(race).repeats_to_come == 0
    history.add_trial(Trial(1, State.COMPLETE, {}, value=0.2, resource=9.0))
    assert fresh(race).repeats_to_come == 2 + 2, "for the leader, and for one that may join it"
    history.add_trial(Trial(2, State.COMPLETE, {}, value=0.3, resource=9.0))
    assert fresh(race).repeats_to_come == 4 + 2
    history.add_trial(Trial(3, State.RUNNING, {}, role=Role.CONFIRM, repeats=1))
    assert fresh(race).repeats_to_come == 3 + 2


def test_what_is_kept_back_does_not_keep_a_paused_leader_from_its_end():
    spec = spec_with(
        budget=TEN_MINUTES, search={"sampler": "random", "confirm": {"top": 3, "seeds": 2}}
    )
    history = history_for(spec)
    ahead = history.add_trial(Trial(0, State.PAUSED, {}, value=0.1, resource=3.0))
    behind = history.add_trial(Trial(1, State.PAUSED, {}, value=0.3, resource=3.0))
    history.add_trial(Trial(2, State.COMPLETE, {}, value=0.2, resource=9.0, speed=0.1))
    race = Confirmation(spec, history, nothing_new)
    spending = Spending(spec.budget, history)
    headroom = Headroom(spending, 350.0, 1.0, 1, kept_back=fresh(race).repeats_to_come * 9.0)
    assert fresh(race).headroom_for(ahead, headroom).in_time(6.0)
    assert not fresh(race).headroom_for(behind, headroom).in_time(6.0)
    assert headroom.in_time(5.0), "at most a third of the 600 s is kept back"
    short = Headroom(spending, 520.0, 1.0, 1, kept_back=fresh(race).repeats_to_come * 9.0)
    assert fresh(race).headroom_for(behind, short).in_time(6.0), "no repeat of 90 s fits any more"


@pytest.mark.thorough
def test_after_the_race_is_decided_the_search_goes_on_and_new_leaders_are_repeated():
    budget = budget_of(wall_clock="60m")
    search = search_by("random", "none", confirm={"top": 2, "seeds": 9})
    spec = spec_with(budget=budget, search=search)
    history = Simulation(spec, curves=Scattered(), workers=2).run().history
    roles = [trial.role for trial in history.trials]
    first = roles.index(Role.CONFIRM)
    again = roles.index(Role.SEARCH, first)
    late = [trial.number for trial in searched(history) if trial.number >= again]
    assert late
    assert used(history, 2, 3600.0) > 0.9
    for trial in searched(history):
        assert repeats_of(history, trial.number) <= FURTHER * 9


@dataclass
class Scattered(Bowl):
    """Bowls that are far apart beside their luck, so that a race is soon decided."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        luck = float(np.random.default_rng(seed).normal()) * 1e-4
        return {"loss": super().measure(params, seed, resource)["loss"] + luck}


@pytest.mark.parametrize("workers", [1, 3])
def test_what_no_search_can_use_goes_to_further_repeats(workers):
    budget = budget_of(4, wall_clock="30m")
    search = search_by("random", "none", confirm={"top": 2, "seeds": 2})
    spec = spec_with(budget=budget, search=search)
    history = Simulation(spec, curves=Noisy(), workers=workers).run().history
    given = [repeats_of(history, trial.number) for trial in searched(history)]
    assert max(given) > 2
    assert sum(number > 0 for number in given) == 2
    if workers == 1:
        assert used(history, 1, 1800.0) > 0.9
    else:
        assert max(given) == FURTHER * 2, "more would hardly sharpen the answer"


@dataclass
class Noisy(Bowl):
    """Losses that differ by luck alone."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        return {"loss": float(np.random.default_rng(seed).normal()) + 10 / resource}


@pytest.mark.thorough
def test_a_race_that_began_again_is_taken_up_as_it_was():
    budget = budget_of(wall_clock="60m")
    search = search_by("random", "none", confirm={"top": 2, "seeds": 3})
    spec = spec_with(budget=budget, search=search)
    curves = Scattered()
    whole = Simulation(spec, curves=curves, workers=1).run().history
    for ticks in range(5, 400, 37):
        simulation = Simulation(spec, curves=curves, workers=1)
        for _ in range(ticks):
            simulation.tick()
        race = simulation.study._agenda._confirmation
        again = Confirmation(spec, simulation.history, nothing_new)
        assert again.is_under_way == (simulation.study.phase is Phase.CONFIRMING)
        assert fresh(again).repeats_to_come == fresh(race).repeats_to_come
        assert fresh(again).next_leader() is fresh(race).next_leader()
        assert fresh(again).further_leaders() == fresh(race).further_leaders()
    assert any(trial.role is Role.CONFIRM for trial in whole.trials)


def searched(history: History) -> list[Trial]:
    return [trial for trial in history.trials if trial.role is not Role.CONFIRM]
