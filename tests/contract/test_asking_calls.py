"""Programs that ask and tell may call in any order with any arguments: each call succeeds or raises
an error that says what is wrong, and the study goes on, on both databases."""

import gc
import math
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hpsearch
from hpsearch.asking.study import AskedStudy
from hpsearch.asking.trial import AskedTrial
from hpsearch.errors import HpsearchError, UserError
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support.studies.asked import asked, spec_with
from support.thoroughness import examples

NUMBERS = st.sampled_from(
    [
        *(0.5, 1, 3, 4.5, 9, 12, 1000.0, 0, -1, True, math.nan, math.inf, -math.inf, 2.0**53),
        *(1e308, 10**400, np.float32(2), np.int64(9), np.bool_(True), np.array([1, 2])),
        *(torch.tensor(9.0), torch.ones(2), None, "3", "x", b"3", [], {}, object()),
    ]
)
NAMES = st.sampled_from(["loss", "loss", "loss", "other", "", "$x", "a\nb", "\ud800", 3, None])
METRICS = NUMBERS | st.dictionaries(NAMES, NUMBERS, max_size=3)
TEXTS = st.sampled_from(
    ["why", "", "\0", "\ud800", "x" * 10_000, None, 3, b"x", [], ValueError("x"), math.nan]
)
PLACES = st.sampled_from([None, "here", Path("here"), "", "\0", "\ud800", b"x", 3, object()])
KINDS = st.sampled_from(["error", "diverged", "timeout", "lost", "x", None, 3])
CALLS = st.one_of(
    st.tuples(st.just("ask")),
    st.tuples(st.just("report"), NUMBERS, METRICS, PLACES),
    st.tuples(st.just("report"), st.integers(1, 9), st.floats(0, 1), st.just("here")),
    st.tuples(st.just("tell"), METRICS),
    st.tuples(st.just("fail"), TEXTS, KINDS),
    st.tuples(st.just("interrupt"), TEXTS),
    st.tuples(st.just("stranger"), NUMBERS),
    st.tuples(st.just("close"), TEXTS),
    st.tuples(st.just("resume"), NUMBERS, NUMBERS),
    st.tuples(st.just("delete")),
)
"""What a program does, and with which arguments; most of it to a trial that it has or had."""


class Program:
    """A program that asks one study, of which it may delete and make again.

    Args:
        url: The database.
        name: The study's name.
        unit: What the budget of its trials counts.
    """

    def __init__(self, url: str, name: str, unit: str) -> None:
        self.url = url
        budget = {"trials": 4, "per_trial": {unit: 9}}
        self.spec = spec_with(study=name, budget=budget)
        self.studies: list[AskedStudy] = [hpsearch.create(url, self.spec)]
        self.trials: list[AskedTrial] = []

    def call(self, of: int, does: str, *arguments: Any) -> None:
        """Do one thing, with one of the trials and studies that it has or had."""
        if does in ("report", "tell", "fail", "interrupt") and not self.trials:
            return
        study = self.studies[of % len(self.studies)]
        trial = self.trials[of % len(self.trials)] if self.trials else None
        calls: dict[str, Callable[..., Any]] = {
            "ask": lambda: self.trials.extend(filter(None, [study.ask()])),
            "report": lambda *more: trial and trial.report(*more),
            "tell": lambda metrics: study.tell(trial, metrics),
            "fail": lambda why, kind: study.tell(trial, failed=why, kind=kind),
            "interrupt": lambda why: study.tell(trial, interrupted=why),
            "stranger": lambda other: study.tell(other, 0.5),
            "close": study.close,
            "resume": self.resume,
            "delete": self.delete,
        }
        calls[does](*arguments)

    def resume(self, trials: Any, name: Any) -> None:
        """Open the study once more, perhaps with more trials; and one by a name that is not its."""
        with suppress(HpsearchError):
            hpsearch.resume(self.url, name).close()
        self.studies.append(hpsearch.resume(self.url, self.studies[0].name, trials=trials))

    def delete(self) -> None:
        """Delete the study under all who have it open, and make it again."""
        with closing(Store.open(self.url)) as store:
            store.delete_study(store.find_study(self.studies[0].name).id)
        self.studies.append(hpsearch.create(self.url, self.spec))

    def can_go_on(self) -> None:
        """The database is whole, and the study can be asked to its end."""
        for study in self.studies:
            study.close()
        with closing(Store.open(self.url)) as store, store.reading() as connection:
            assert violations(connection) == []
        with hpsearch.resume(self.url, self.studies[0].name) as study:
            while (trial := study.ask()) is not None:
                study.tell(trial, 0.5)
        with closing(Store.open(self.url)) as store, store.reading() as connection:
            assert violations(connection) == []


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Gives a name that no study has yet."""
    names = (f"study-{n}" for n in range(1_000_000))
    return lambda: next(names)


@pytest.mark.thorough
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    unit=st.sampled_from(["epochs", "seconds", "tokens"]),
    calls=st.lists(st.tuples(st.integers(0, 3), CALLS), min_size=1, max_size=12),
)
def test_whatever_a_program_calls_is_done_or_refused_and_the_study_goes_on(
    database_url, new_name, unit, calls
):
    program = Program(database_url, new_name(), unit)
    for of, (does, *arguments) in calls:
        with suppress(HpsearchError):
            program.call(of, does, *arguments)
    program.can_go_on()


def test_what_is_not_its_trial_is_refused(sqlite_url):
    with (
        hpsearch.create(sqlite_url, spec_with()) as one,
        hpsearch.create(sqlite_url, spec_with(study="two")) as two,
    ):
        trial = asked(one)
        for other, why in ((None, "is not a trial"), (3, "is not a trial"), (trial, "another")):
            with pytest.raises(UserError, match=why):
                two.tell(other, 0.5)  # type: ignore[arg-type]
        assert not trial.report(12, 0.5)  # past its budget: it is complete


def test_a_thread_that_holds_all_trials_through_several_objects_is_told_so(sqlite_url):
    spec = spec_with(budget={"trials": 1, "per_trial": {"epochs": 9}})
    with hpsearch.create(sqlite_url, spec) as one, hpsearch.create(sqlite_url, spec) as other:
        held = asked(one)
        with pytest.raises(UserError, match="all were asked for by this thread: 0"):
            other.ask()
    lost = hpsearch.create(sqlite_url, spec)
    assert lost.ask() is not None
    del lost, one, held
    gc.collect()
    with hpsearch.create(sqlite_url, spec) as study:
        again = asked(study)
        assert again.attempt == 3
