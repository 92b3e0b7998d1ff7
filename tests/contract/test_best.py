"""The database ranks trials as `hpsearch.search.ranking` does."""

import itertools
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from hpsearch.domain.facts import Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.search.ranking.selection import Ranked, rank
from hpsearch.store.reading.best import COMPARED, best_of_each, best_trials
from hpsearch.store.reading.queries import find_study
from hpsearch.store.schema import trials
from support.thoroughness import examples

NAMES = itertools.count()
COUNTED = ("violation", "standing")

VALUES = st.sampled_from([None, math.nan, math.inf, -math.inf, 0.0, 0.5, 0.5, 0.75, 0.9, 1.0])
MARGINS = st.sampled_from([-1.0, 0.0, 0.25, 0.5, math.inf, math.nan])


@st.composite
def trials_drawn(draw: st.DrawFn, number: int, most: int) -> Trial:
    """A trial as no study need have it: any state, value and expectation, and now and then a repeat
    of another."""
    is_repeat = number > 0 and draw(st.integers(0, 4)) == 0
    limits = draw(st.dictionaries(st.sampled_from("ab"), MARGINS, max_size=2))
    return Trial(
        number,
        draw(st.sampled_from(State)),
        {},
        value=draw(VALUES),
        expected=draw(VALUES),
        expected_deviation=draw(st.sampled_from([None, 0.0, 0.1])),
        resource=draw(st.sampled_from([1.0, 3.0])),
        gpu_seconds=draw(st.sampled_from([0.0, 2.0])),
        cost=draw(st.sampled_from([None, 0.5])),
        checkpoint_bytes=draw(st.sampled_from([None, 100])),
        role=Role.CONFIRM if is_repeat else draw(st.sampled_from([Role.SEARCH, Role.DEFAULT])),
        repeats=draw(st.integers(0, most)) if is_repeat else None,
        system_attrs={f"constraints:{name}": over for name, over in limits.items()},
    )


@st.composite
def studies_drawn(draw: st.DrawFn) -> list[Trial]:
    """The trials of a study: sometimes more of them than are compared with the best one."""
    most = draw(st.sampled_from([3, 12, 45]))
    return [draw(trials_drawn(number, most)) for number in range(most)]


def places(ranked: list[Ranked[Any]]) -> list[tuple[int, float, Any]]:
    return [(each.trial.number, each.value, each.confirmed) for each in ranked]


def means(ranked: list[Ranked[Any]]) -> list[tuple[int, float, Any]]:
    """Places without intervals, which are not read of many studies at once."""
    of_repeats = [each.confirmed and each.confirmed.mean for each in ranked]
    return [
        (each.trial.number, each.value, mean) for each, mean in zip(ranked, of_repeats, strict=True)
    ]


def as_read(trial: Trial) -> Trial:
    """A trial as a database gives it back: without NaN."""
    for name in ("value", "expected"):
        value = getattr(trial, name)
        if value is not None and math.isnan(value):
            setattr(trial, name, None)
    return trial


@settings(max_examples=examples(200))
@given(
    drawn=studies_drawn(),
    direction=st.sampled_from(["minimize", "maximize"]),
    top=st.sampled_from([1, 5, 20, 100]),
)
def test_the_database_ranks_as_python_does(store, drawn, direction, top):
    study = store.create_study(StudyRecord(0, f"s{next(NAMES)}", "", (direction,)))
    store.commit(study.id, Changes(trials=drawn))
    in_python = rank([as_read(each) for each in drawn], direction)
    with store.reading() as connection:
        head = find_study(connection, study.name)
        in_sql = best_trials(connection, head, top)
        every = best_trials(connection, head, len(drawn))
        first = best_of_each(connection, [head])[head.id]
    assert places(in_sql) == places(in_python)[:top]
    if top >= len(drawn):
        assert [each.tied for each in in_sql] == [each.tied for each in in_python]
    if len(drawn) <= COMPARED:
        tied = [each.tied for each in every[:top]]
        assert [each.tied for each in in_sql] == tied, "however many are asked for"
    assert means([first] if first else []) == means(in_python)[:1]


def test_a_commit_ranks_trials_by_what_they_exceed_and_what_is_expected(store):
    made = [
        Trial(0, State.COMPLETE, {}, value=0.5, expected=0.75),
        Trial(1, State.FAILED, {}, value=0.9),
        Trial(2, State.COMPLETE, {}, value=0.1, role=Role.CONFIRM, repeats=0),
        Trial(3, State.PAUSED, {}, value=0.3, system_attrs={"constraints:a": 0.25}),
    ]
    study = store.create_study(StudyRecord(0, "ranked", ""))
    store.commit(study.id, Changes(trials=made))
    order = select(trials.c.number, trials.c.violation, trials.c.standing)
    of_study = order.where(trials.c.study_id == study.id).order_by(trials.c.number)
    with store.reading() as connection:
        ranked = [tuple(row) for row in connection.execute(of_study)]
    assert ranked == [(0, 0.0, 0.75), (1, 0.0, None), (2, 0.0, None), (3, 0.25, 0.3)]
