"""Another budget in a study file's text."""

from __future__ import annotations

import pytest
import yaml

from hpsearch.errors import UserError
from hpsearch.study_file.text import yaml_source
from hpsearch.study_file.text.editing import with_budget

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
    with pytest.raises(UserError, match="not a mapping of its own"):
        with_budget("study: a\n", {"trials": 3})


def edited_or_refused(text: str, changes: dict[str, float | str]) -> str | None:
    try:
        return with_budget(text, changes)
    except UserError:
        with pytest.raises(UserError, match="an anchor, an alias or a key after"):
            with_budget(text, changes)
    return None


@pytest.mark.parametrize(
    "text",
    [
        "budget:\n  trials:\n  per_trial: {epochs: 3}\n",
        "budget:\n  trials:   # as many as there is time for\n  per_trial: {epochs: 3}\n",
        "budget: {trials: , per_trial: {epochs: 3}}\n",
        "budget: {trials, per_trial: {epochs: 3}}\n",
        "budget:\n  trials: ~\n",
        'budget:\n  "trials": 40\n',
        "settings: &some {trials: 40}\nbudget:\n  <<: *some\n  per_trial: {epochs: 3}\n",
        "budget: &limits\n  trials: 40\n",
        "budget:\r\n  trials: 40\r\n  per_trial: {epochs: 3}\r\n",
        "budget:\n  ? trials\n  : 40\n",
        "seed: &n 7\nbudget:\n  trials: *n\n",
        "budget:\n  trials: &n 7\nseed: *n\n",
        "settings: &limits {trials: 7}\nbudget: *limits\n",
        "budget: {? trials : 40}\n",
    ],
)
@pytest.mark.parametrize("changes", [{"trials": 80}, {"gpu_hours": 1e-05, "wall_clock": "1:30"}])
def test_what_comes_out_says_what_was_meant_or_is_refused(
    text: str, changes: dict[str, float | str]
) -> None:
    before = yaml_source.read(text)
    changed = edited_or_refused(text, changes)
    if changed is None:
        assert "&" in text or "?" in text, "there is no other reason"
        return
    after = yaml_source.read(changed)
    assert not after.problems
    assert after.value == {**before.value, "budget": {**before.value["budget"], **changes}}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_limit_that_is_not_finite_is_left_for_the_study_file_to_refuse(value: float) -> None:
    assert repr(
        yaml.safe_load(with_budget(BLOCK, {"gpu_hours": value}))["budget"]["gpu_hours"]
    ) == repr(value)
