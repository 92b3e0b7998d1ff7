"""What a row of `studies` says about the study: whether its trials have limits to keep."""

from __future__ import annotations

import pytest

from hpsearch.domain.records import StudyState
from hpsearch.store.reading.queries import StudyHead


def study_of(spec: str) -> StudyHead:
    return StudyHead(
        id=1,
        name="a-study",
        spec=spec,
        directions=("maximize",),
        state=StudyState.RUNNING,
        reason=None,
        created=0.0,
        ended=None,
        active_seconds=0.0,
        driver=None,
        stop_requested=False,
        base=None,
    )


@pytest.mark.parametrize(
    "spec",
    [
        "study: a  # without constraints\n",
        "study: constraints-of-memory\n",
        "task: {kind: 'constraints:train'}\n",
        "study: a\nconstraints:\n",
        "study: a\nconstraints: {}\n",
    ],
)
def test_a_study_file_that_only_mentions_constraints_sets_no_limits(spec: str) -> None:
    assert not study_of(spec).limited


@pytest.mark.parametrize(
    "spec", ["constraints: {loss: {max: 1}}\n", '"constr\\x61ints": {loss: {max: 1}}\n']
)
def test_a_study_file_with_constraints_sets_limits(spec: str) -> None:
    assert study_of(spec).limited


def test_limits_are_assumed_where_no_study_file_can_rule_them_out() -> None:
    assert study_of("").limited
