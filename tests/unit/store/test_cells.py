"""Cells of a column that are read many at a time: as one by one, and damage is still found."""

import math

import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.errors import Damaged
from hpsearch.store.schema import cell_of, reports, trials

DISTRIBUTION = (
    '{"name":"FloatDistribution","attributes":{"step":null,"low":0.0,"high":1.0,"log":false}}'
)
ESCAPED = '{"loss":{"$float":"inf"}}'


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (trials.c.value, [0.5, None, 1.5]),
        (trials.c.value, [0.5, 1, None]),  # a whole number that somebody wrote
        (trials.c.number, [0, 1, 2]),
        (trials.c.state, ["running", "complete"]),
        (trials.c.error_kind, [None, "diverged"]),
        (trials.c.params, ["{}", '{"x":1,"y":{"z":[1]}}', None]),
        (reports.c.metrics, ['{"loss":0.5}', '{"loss":1}', ESCAPED, "{}"]),
        (trials.c.findings, ["[]", None]),
    ],
    ids=str,
)
def test_many_cells_are_read_as_each_of_them(column, cells):
    cell = cell_of(column)
    values = cell.read_all(cells)
    assert list(values) == [None if each is None else cell.read(each) for each in cells]
    known = [each for each in values if each is not None]
    assert len({type(each) for each in known}) == 1


def test_values_have_the_types_of_their_columns():
    assert cell_of(trials.c.state).read_all(["paused"])[0] is State.PAUSED
    (metrics,) = cell_of(reports.c.metrics).read_all([ESCAPED])
    assert metrics == {"loss": math.inf}


@pytest.mark.parametrize(
    ("column", "bad"),
    [
        (trials.c.value, "much"),
        (trials.c.number, 0.5),
        (trials.c.state, "sleeping"),
        (trials.c.error_text, 7),
        (trials.c.params, "[1]"),
        (trials.c.params, "{"),
        (trials.c.distributions, '{"x":"{}"}'),
        (reports.c.metrics, '{"loss":"low"}'),
        (reports.c.metrics, '{"loss":null}'),
    ],
    ids=str,
)
def test_one_bad_cell_among_many_is_found(column, bad):
    with pytest.raises(Damaged, match=column.name):
        cell_of(column).read_all([None, bad, None])


def test_trials_with_the_same_distributions_share_them():
    text = '{"x":' + f"{DISTRIBUTION!r}".replace('"', '\\"').replace("'", '"') + "}"
    one, other = cell_of(trials.c.distributions).read_all([text, text])
    assert one is other
    assert one["x"].high == 1.0
