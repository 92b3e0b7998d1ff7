"""Trials that are asked for while a study runs, and begin with a checkpoint of another one."""

from __future__ import annotations

import math
import random
from contextlib import closing
from typing import Any

import pytest

from hpsearch.brain.retention import lent_by
from hpsearch.brain.study import Study
from hpsearch.creation.study import create_study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind, RequestKind, Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Request, Trial
from hpsearch.driver.loop import Driver
from hpsearch.ranking.contenders import Contenders
from hpsearch.simulation.running import Straight
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_run.brain import build_study
from support.studies.disturbances import Disturbed, DisturbedStore, Troubles
from support.studies.small import Bowl, Simulation, spec_with
from support.thoroughness import examples

CONFIRMED = {"sampler": "random", "confirm": {"top": 3, "seeds": 2}}


def asked(simulation: Simulation, checkpoint: Any, **params: float) -> Request:
    """Ask for a trial that begins with the checkpoint of another one, as a driver is asked."""
    content = {"params": params, "why": "", "checkpoint": checkpoint}
    request = Request(1, RequestKind.PROPOSE, content, "ann@desk", created=0.0)
    simulation.study.on_request(request, simulation.executor.now)
    simulation.written.append(simulation.history.drain())
    return request


def study_until(state: State, at: float, **changes: Any) -> tuple[Simulation, Trial]:
    """A study, run until a trial is in a state with this resource."""
    budget = {"trials": 12, "per_trial": {"epochs": 9}}
    simulation = Simulation(spec_with(**{"budget": budget, **changes}))
    for _ in range(1000):
        simulation.tick()
        for trial in simulation.history.trials:
            if trial.state is state and trial.resource == at:
                return simulation, trial
    raise AssertionError(f"no trial became {state}")


def started(simulation: Simulation, number: int | None) -> Trial:
    """The trial of a number, once it has started."""
    assert number is not None
    trial = simulation.history.trials[number]
    for _ in range(1000):
        if trial.attempts:
            return trial
        simulation.tick()
    raise AssertionError("it never started")


def test_it_begins_where_the_other_one_is_and_pays_for_nothing_before() -> None:
    simulation, source = study_until(State.PAUSED, 1.0)
    paid = source.gpu_seconds
    trial = started(simulation, asked(simulation, source.number, x=0.31).trial)
    assert (trial.continues, trial.continues_at, trial.continues_with) == (source.number, 1, "1.0")
    assert (trial.role, trial.params) == (Role.PROPOSED, {"x": 0.31})
    assert trial.attempts[0].start_resource == 1.0
    simulation.run()
    assert trial.state is State.COMPLETE
    assert min(trial.reports) == 2.0
    assert trial.gpu_seconds == pytest.approx(80 * 0.81)
    assert source.gpu_seconds >= paid
    told = [each.why for tick in simulation.written for each in tick.decisions]
    assert f"asked for by ann@desk; continues trial {source.number} from 1" in told


def test_what_is_not_given_is_as_in_the_trial_that_it_continues() -> None:
    simulation, source = study_until(State.PAUSED, 1.0)
    trial = started(simulation, asked(simulation, source.number).trial)
    assert trial.params == source.params
    assert trial.seed != source.seed


def test_it_is_compared_at_the_rungs_above_its_beginning_only() -> None:
    simulation, source = study_until(State.PAUSED, 3.0)
    trial = started(simulation, asked(simulation, source.number, x=0.9).trial)
    while not trial.reports:
        simulation.tick()
    assert min(trial.reports) == 4.0
    assert trial.rung is None
    simulation.run()
    resumed = Simulation(simulation.study.spec, simulation.history)
    rungs = resumed.study._searcher._rungs
    assert rungs is not None
    assert all(trial.number not in rung.scores for rung in rungs.rungs)


@pytest.mark.parametrize(("state", "at"), [(State.PAUSED, 1.0), (State.RUNNING, 2.0)])
def test_the_checkpoint_stays_until_there_is_another_one(state: State, at: float) -> None:
    simulation, source = study_until(state, at)
    trial = simulation.history.trials[asked(simulation, source.number).trial or 0]
    files = simulation.executor.checkpoints[source.number]
    while trial.checkpoint is None:
        assert trial.continues_with in files
        assert source.checkpoint is not None
        simulation.tick()
        assert (source.number in simulation.study.lent) == (trial.checkpoint is None)
    simulation.run()
    assert simulation.study.lent == set()
    assert trial.reports


def test_a_driver_that_dies_before_it_starts_leaves_the_checkpoint_to_the_next() -> None:
    simulation, source = study_until(State.PAUSED, 1.0)
    number = asked(simulation, source.number, x=0.3).trial
    assert lent_by(simulation.history.trials) == {source.number}
    start = simulation.executor.now
    resumed = Simulation(simulation.study.spec, simulation.history, start=start)
    resumed.tick()
    assert source.number in resumed.study.lent
    trial = started(resumed, number)
    assert trial.attempts[0].start_resource == 1.0
    resumed.run()
    assert trial.state is State.COMPLETE


def test_what_cannot_be_continued_is_refused() -> None:
    simulation, complete = study_until(State.COMPLETE, 9.0)
    trials = simulation.history.trials
    bare = next(trial for trial in trials if trial.state is State.RUNNING)
    bare.checkpoint = None
    reasons = {
        complete.number: "has been trained in full: nothing is left to train",
        bare.number: "has saved no checkpoint that could be continued",
        99: "there is no trial 99",
        True: "there is no trial True",
        "1": "there is no trial 1",
    }
    for source, why in reasons.items():
        assert why in str(asked(simulation, source).refused)
    assert "x: must be" in str(asked(simulation, complete.number, x=7.0).refused)
    complete.state, complete.resource = State.PRUNED, 3.0
    assert "has ended (pruned)" in str(asked(simulation, complete.number).refused)


def test_parameters_that_shape_the_model_cannot_be_changed() -> None:
    task = {"kind": "tabular", "train": "rows.csv", "target": "kind", "validation": 0.2}
    space = {
        "width": {"type": "int", "low": 8, "high": 64},
        "dropout": {"type": "float", "low": 0.0, "high": 0.5},
    }
    simulation = Simulation(spec_with(task=task, space=space), curves=_Flat())
    for _ in range(8):
        simulation.tick()
    source = next(trial for trial in simulation.history.trials if trial.checkpoint)
    other = 64 if source.params["width"] != 64 else 8
    refused = asked(simulation, source.number, width=other).refused
    assert f"trial {source.number} cannot be continued with another width" in str(refused)
    assert asked(simulation, source.number, dropout=0.25).refused is None


class _Flat:
    """Every configuration reaches the same."""

    def measure(self, params: Any, seed: int, resource: float) -> dict[str, float]:
        return {"loss": 1 / (1 + resource)}

    def seconds(self, params: Any, resource: float) -> float:
        return resource


def test_an_older_checkpoint_moves_its_beginning_and_none_fails_it() -> None:
    simulation, source = study_until(State.PAUSED, 3.0)
    study, now = simulation.study, simulation.executor.now
    for first, began in ((3.0, 2.0), (1.0, None)):
        trial = started(simulation, asked(simulation, source.number).trial)
        report = ev.Reported(trial.number, 1, first, {"loss": 0.5})
        study.on_event(report, now)
        if began is None:
            assert trial.error_kind is ErrorKind.ERROR
            assert trial.error_text == (
                f"reported at 1, though it continues trial {source.number}: it began anew"
            )
        else:
            assert trial.continues_at == trial.attempts[0].start_resource == began
            assert trial.resource == first


def test_it_is_not_repeated_to_confirm_it() -> None:
    simulation, source = study_until(State.PAUSED, 1.0, search=CONFIRMED)
    number = asked(simulation, source.number, x=0.3).trial
    simulation.run()
    trials = simulation.history.trials
    best = min((each for each in trials if each.value is not None), key=lambda each: each.value)
    assert best.number == number  # the others are further from the best x, which is 0.3
    repeats = [each for each in trials if each.role is Role.CONFIRM]
    assert repeats
    assert number not in {each.repeats for each in repeats}
    leaders = Contenders(trials, "minimize").leaders(3)
    assert number not in [each.number for each in leaders]


class _Checked(Straight):
    """Slots whose trials find a checkpoint where they are told to begin with one."""

    def launch(self, order: ev.Launch) -> None:
        if order.takes_over:
            assert order.continues is not None
            assert order.resume_from in self.checkpoints[order.continues]
        super().launch(order)


def test_a_trial_that_goes_on_meanwhile_removes_nothing_that_another_one_begins_with(
    sqlite_url: str,
) -> None:
    spec = spec_with(budget={"trials": 3, "per_trial": {"epochs": 9}}, search={"pruner": "none"})
    executor = _Checked(Bowl(), trial_budget(spec), workers=1)
    with closing(Store.open(sqlite_url)) as store:
        history = create_study(store, spec, "")

        def watch(study: Study, changes: Changes, now: float) -> None:
            for report in changes.reports:
                if report.trial == 0 and report.resource == 2.0:
                    content = {"params": {"x": 0.3}, "checkpoint": 0}
                    store.add_request("plain", Request(0, RequestKind.PROPOSE, content, "ann", now))

        lease = store.acquire(history.study.id, "driver", 1e9)
        study = build_study(history, spec)
        Driver(study, executor, store, lease, watch, executor.clock, poll_s=math.inf).run()
        trials = store.load("plain").trials
    source, continued = trials[:2]
    assert source.state is continued.state is State.COMPLETE
    assert continued.continues_at is not None
    assert 2.0 <= continued.continues_at < 9.0
    assert min(continued.reports) == continued.continues_at + 1


@pytest.mark.thorough
def test_whatever_befalls_drivers_what_was_asked_is_continued_and_the_books_are_right() -> None:
    found: list[Trial] = []
    for seed in range(examples(10)):
        draw = random.Random(seed)
        store = DisturbedStore.open("sqlite://")
        assert isinstance(store, DisturbedStore)
        with closing(store):
            spec = spec_with(budget={"trials": 14, "per_trial": {"epochs": 9}})
            study = Disturbed(store, spec, Bowl(), workers=2)
            for number in range(8):
                ask_of(store, draw)
                history = study.drive(Troubles.drawn(draw, last=number == 7))
                with store.reading() as connection:
                    assert violations(connection) == []
                if study.sessions[-1].how == "finished":
                    break
                study.idle(draw.uniform(0.0, 60_000.0))
            found += [trial for trial in history.trials if trial.continues is not None]
            assert lent_by(history.trials) == set()
    assert found
    assert all(trial.state.terminal for trial in found)
    for trial in found:
        assert trial.continues_at is not None
        assert min(trial.reports, default=9.0) > trial.continues_at


def ask_of(store: Store, draw: random.Random) -> None:
    """Ask for a trial that continues one of those that can be."""
    trials = store.load("plain").trials
    able = [each.number for each in trials if each.checkpoint and not each.state.terminal]
    if able:
        content = {"params": {"x": draw.random()}, "checkpoint": draw.choice(able)}
        store.add_request("plain", Request(0, RequestKind.PROPOSE, content, "ann@desk", 1.0))
