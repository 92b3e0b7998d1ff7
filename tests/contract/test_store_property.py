"""Whatever a driver does to a study over any number of ticks, loading gives back what was
committed."""

import itertools
import math
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, ReportRecord, StudyRecord, StudyState, Trial
from support.thoroughness import examples

numbers = st.floats(allow_nan=False)
moments = st.floats(min_value=0, max_value=4e9)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0$"), min_size=1, max_size=8
)
attributes = st.dictionaries(names, st.none() | st.booleans() | st.integers() | numbers | words)
distributions: st.SearchStrategy[BaseDistribution] = st.sampled_from(
    [
        FloatDistribution(0.0, 1.0),
        IntDistribution(1, 9, log=True),
        CategoricalDistribution(["a", None, 1.5, False]),
    ]
)
DIRECTIONS = ("minimize", "maximize")
DRAWN = "drawn "
"""Begins the names that have distributions: what such a parameter can be follows from them."""


def trials(number: int) -> st.SearchStrategy[Trial]:
    return st.builds(
        Trial,
        number=st.just(number),
        state=st.sampled_from(State),
        params=attributes.filter(lambda params: not any(name.startswith(DRAWN) for name in params)),
        seed=st.integers(0, 2**63 - 1),
        value=st.none() | numbers,
        resource=moments,
        rung=st.none() | st.integers(0, 9),
        error_text=st.none() | words,
        gpu_seconds=moments,
        cost=st.none() | moments,
        ended=st.none() | moments,
        repeats=st.none() | st.integers(0, 99),
        values=st.none() | st.lists(numbers, min_size=len(DIRECTIONS), max_size=len(DIRECTIONS)),
        distributions=st.dictionaries(names.map(DRAWN.__add__), distributions, max_size=3),
        user_attrs=attributes,
        system_attrs=attributes,
        reports=st.just({}).map(dict),
        attempts=st.just([]).map(list),
    )


class Ticks:
    """Draws what happens in a tick and does it to a history."""

    def __init__(self, data: st.DataObject, history: History) -> None:
        self._data = data
        self._history = history

    def _draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self._data.draw(strategy)

    def happen(self) -> None:
        deeds = st.sampled_from(["add", "change", "report", "attempt", "end", "study"])
        for deed in self._draw(st.lists(deeds, max_size=6)):
            if deed == "study":
                self._change_study()
            elif deed == "add" or not self._history.trials:
                self._history.add_trial(self._draw(trials(len(self._history.trials))))
            else:
                getattr(self, f"_{deed}")(self._draw(st.sampled_from(self._history.trials)))

    def _change_study(self) -> None:
        study = self._history.study
        study.state = self._draw(st.sampled_from(StudyState))
        study.reason = self._draw(st.none() | words)
        study.user_attrs = self._draw(attributes)
        self._history.touch_study()

    def _change(self, trial: Trial) -> None:
        changed = self._draw(trials(trial.number))
        changing = "state params value values resource error_text distributions system_attrs"
        for name in changing.split():
            setattr(trial, name, getattr(changed, name))
        self._history.touch(trial)

    def _report(self, trial: Trial) -> None:
        resource = self._draw(st.sampled_from([1.0, 1 / 3, 2.5]) | moments)
        metrics = self._draw(st.dictionaries(names, numbers, max_size=3))
        self._history.add_report(
            ReportRecord(trial.number, resource, self._draw(st.none() | numbers), metrics)
        )

    def _attempt(self, trial: Trial) -> None:
        worker, started = self._draw(words), self._draw(moments)
        self._history.add_attempt(Attempt(trial.number, len(trial.attempts) + 1, worker, started))

    def _end(self, trial: Trial) -> None:
        for attempt in trial.attempts[-1:]:
            attempt.ended = self._draw(moments)
            attempt.outcome = self._draw(st.sampled_from(Outcome))
            self._history.touch_attempt(attempt)


study_numbers = itertools.count()


@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_loaded_is_what_was_committed(store, data):
    name = f"study-{next(study_numbers)}"
    history = History(
        store.create_study(StudyRecord(0, name, "", DIRECTIONS, active_seconds=math.pi))
    )
    lease = store.acquire(history.study.id, "driver", ttl_s=60.0)
    follower, revision = History(store.find_study(name)), -1
    ticks = Ticks(data, history)
    for _ in range(data.draw(st.integers(1, 4))):
        ticks.happen()
        store.commit(history.study.id, history.drain(), lease)
        revision = store.refresh(follower, revision)
        assert follower.trials == history.trials
    loaded = store.load(name)
    assert loaded.study == follower.study == history.study
    assert loaded.trials == history.trials
