"""Another budget in a study file's text."""

from __future__ import annotations

import pytest

from hpsearch.study_file.text.editing import with_budget
from support.files.study_files import GOOD
from trials.descriptions import yaml_source

CHANGES = {"trials": 80, "gpu_hours": 1e-05, "wall_clock": "4h"}
ODD = """\
study: '2024-01-01'
settings: &some {trials: 40, when: 2024-01-01, at: 1:30, on: 1e-5}
budget:
  <<: *some
  per_trial: {epochs: 3}
"""


@pytest.mark.parametrize("text", [GOOD, ODD])
def test_limits_are_replaced_and_added_and_all_else_stays(text: str) -> None:
    before = yaml_source.read(text).value
    changed = yaml_source.read(with_budget(text, CHANGES))
    assert not changed.problems
    assert changed.value == {**before, "budget": {**before["budget"], **CHANGES}}
    assert list(changed.value) == list(before)


def test_nothing_to_change_changes_nothing() -> None:
    assert with_budget(GOOD, {}) == GOOD
