"""The way of one report: from an executor through driver, brain, search and store, and back.

The docstring of `hpsearch.brain.study` tells this way. Here every call of a public function is
noted that leads from one room into another, while a study with one worker is driven on a virtual
clock, with a real database.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from inspect import getattr_static
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver
from hpsearch.search.searcher import Searcher
from hpsearch.simulation.running import SimulatedExecutor
from hpsearch.store.optuna_storage.view import HistoryStorage
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from support.studies.small import Bowl, budget_of, spec_with

ROOMS = ("driver", "brain", "search", "store", "simulation")
"""The rooms on the way. In a simulation the executor is the one of `simulation`."""
FLOORS = ("running.", "search.ranking", "store.optuna_storage")
"""Floors of rooms that stand for themselves here."""

UP = ["driver -> brain Study.on_event", "brain -> search Searcher.assess"]
"""How a report comes in: each room asks the next one once."""

TICK, COMMIT = "driver -> brain Study.on_tick", "driver -> store Store.commit"
NOTES = ["brain -> search Searcher.expectations", "brain -> search Searcher.expectations_recorded"]
DOWN = [TICK, COMMIT, "driver -> simulation SimulatedExecutor.recorded"]
"""How it comes to the database: the tick is ended and committed, and the executor is told so."""


ASKED_BEFORE_A_POLL = "Spending.due"
"""How long the next poll may wait: no part of the way."""


@dataclass
class Round:
    """What happened from one poll of the executor to the next one."""

    events: list[ev.Event]
    entries: list[str] = field(default_factory=list)


class Tracing(SimulatedExecutor):
    """An executor that notes, between two polls, each entry into a room."""

    rounds: list[Round]

    def poll(self, timeout_s: float) -> list[ev.Event]:
        sys.setprofile(None)
        events = super().poll(timeout_s)
        self.rounds.append(Round(events))
        sys.setprofile(self._note)
        return events

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame.f_back is None:
            return
        to, came_from = room_of(frame), room_of(frame.f_back)
        between = to in ROOMS and came_from in ROOMS and to != came_from
        name = frame.f_code.co_qualname
        if between and name != ASKED_BEFORE_A_POLL and is_public_function(frame):
            self.rounds[-1].entries.append(f"{came_from} -> {to} {name}")


def room_of(frame: FrameType) -> str:
    """The room of hpsearch that a frame's code belongs to; empty outside of all."""
    package, *places = frame.f_globals.get("__name__", "").split(".")
    if package != "hpsearch" or not places:
        return ""
    return places[1] if ".".join(places[:2]).startswith(FLOORS) else places[0]


def is_public_function(frame: FrameType) -> bool:
    """Whether a frame runs a function that others may call; attributes are read, not entered."""
    owner: Any = sys.modules[frame.f_globals["__name__"]]
    for name in frame.f_code.co_qualname.split("."):
        if name.startswith(("_", "<")):
            return False
        owner = getattr_static(owner, name)
    return not isinstance(owner, property)


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(Store.open("sqlite://")) as opened:
        yield opened


@contextmanager
def untraced() -> Iterator[None]:
    """Leave no profile function behind."""
    before = sys.getprofile()
    try:
        yield
    finally:
        sys.setprofile(before)


def driven(store: Store, folder: Path, spec: StudySpec) -> list[Round]:
    """The rounds of a study that is driven to its end."""
    history = create_study(store, spec, str(folder))
    executor = Tracing(Bowl(), trial_budget(spec), workers=1, gpus=1.0, losses=())
    executor.rounds = []
    lease = store.acquire(history.study.id, "driver", ttl_s=1e9)
    view = HistoryStorage(history)
    study = Study(spec, history, Searcher(spec, history, view))
    with untraced():
        Driver(study, executor, store, lease, clock=lambda: executor.now, poll_s=1e9).run()
    return executor.rounds


def reports_alone(rounds: Sequence[Round]) -> list[Round]:
    """The rounds in which a report came in, and nothing else."""
    return [each for each in rounds if [type(event) for event in each.events] == [ev.Reported]]


@pytest.fixture
def reports(store: Store, tmp_path: Path) -> list[Round]:
    """The rounds in which a report came in and nothing else, of a study with rungs."""
    budget = budget_of(12)
    return reports_alone(driven(store, tmp_path, spec_with(budget=budget)))


def commands_of(entries: Sequence[str]) -> list[str]:
    """The commands that the driver carried out."""
    executor = "driver -> simulation SimulatedExecutor."
    calls = [entry.removeprefix(executor) for entry in entries if entry.startswith(executor)]
    return [call for call in calls if call != "recorded"]


def without_notes(entries: Sequence[str]) -> list[str]:
    """The entries without what is noted of the whole study, from time to time and not for a
    report."""
    assert all(entries.count(note) <= 1 for note in NOTES)
    return [entry for entry in entries if entry not in NOTES]


def test_a_report_after_which_its_trial_goes_on_enters_each_room_once(reports):
    went_on = [each for each in reports if not {"stop", "launch"} & {*commands_of(each.entries)}]
    seen = set()
    for each in went_on:
        entries = without_notes(each.entries)
        assert entries[:5] == UP + DOWN
        commands = commands_of(entries[5:])
        assert len(commands) == len(entries[5:]), "nothing but commands follows the commit"
        seen.add(tuple(commands))
    assert seen == {(), ("advance",)}, "between two rungs, and at one"


def test_a_report_that_frees_a_slot_asks_the_search_once_and_then_for_work(reports):
    freed = [each for each in reports if "stop" in commands_of(each.entries)]
    assert freed
    for each in freed:
        entries = each.entries
        assert entries[:3] == [*UP, TICK]
        committed = entries.index(COMMIT)
        for_work = entries[3:committed]
        assert all(entry.startswith("brain -> search") for entry in for_work)
        assert UP[1] not in for_work
        assert commands_of(entries[: committed + 1]) == [], "no command leaves before the commit"
        assert commands_of(entries[committed:]) in (["stop", "launch"], ["stop"])


def test_a_round_is_committed_once(store, tmp_path):
    budget = budget_of(12)
    *rounds, last = driven(store, tmp_path, spec_with(budget=budget))
    assert all(each.entries.count(COMMIT) <= 1 for each in rounds)
    assert all(each.entries.count(COMMIT) == 1 for each in reports_alone(rounds))
    assert last.entries.count(COMMIT) == 2, "the study ended with it, and was closed"
