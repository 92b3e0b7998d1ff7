"""Another budget in a study file's text."""

from __future__ import annotations

import pytest
import yaml

from hpsearch.errors import UserError
from hpsearch.spec_edit import with_budget

BLOCK = """\
study: a  # the first
budget:
  trials: 40   # a working day
  wall_clock: 2h
  per_trial: {epochs: 3}
seed: 7
"""
BRACES = "study: a\nbudget: {trials: 40, per_trial: {epochs: 3}}\n"


@pytest.mark.parametrize("text", [BLOCK, BRACES])
def test_limits_are_replaced_and_added_and_all_else_stays(text: str) -> None:
    changed = with_budget(text, {"trials": 80, "gpu_hours": 1.5, "wall_clock": "4h"})
    expected = yaml.safe_load(text)
    expected["budget"] |= {"trials": 80, "gpu_hours": 1.5, "wall_clock": "4h"}
    assert yaml.safe_load(changed) == expected


def test_comments_and_order_stay() -> None:
    assert with_budget(BLOCK, {"trials": 80}) == BLOCK.replace("40", "80")


def test_nothing_to_change_changes_nothing() -> None:
    assert with_budget(BLOCK, {}) == BLOCK


def test_a_budget_that_is_an_alias_of_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="no mapping of its own"):
        with_budget("study: a\n", {"trials": 3})
