"""Configurations on the command line, and another budget in a study file's text."""

import pytest

from hpsearch.errors import UserError
from hpsearch.study_file.text import configurations, with_budget
from support.files.study_files import GOOD
from support.studies.small import spec_with
from trials.descriptions import yaml_source

SPEC = spec_with(
    space={
        "rate": {"type": "float", "low": 1.0e-5, "high": 1.0, "log": True},
        "layers": {"type": "int", "low": 1, "high": 4},
        "optimizer": {"type": "categorical", "choices": ["adamw", "sgd"]},
        "lora": {"type": "categorical", "choices": [True, False, None]},
        "rank": {"type": "int", "low": 1, "high": 64, "when": {"lora": True}},
    }
)


def test_values_read_as_what_they_are_and_nothing_to_change_changes_nothing():
    texts = ["rate=1e-4, layers=2, optimizer='sgd', lora=true, rank=8", "lora=null", "rate=1"]
    first, second, third = configurations(texts, SPEC)
    assert first == {"rate": 1e-4, "layers": 2, "optimizer": "sgd", "lora": True, "rank": 8}
    assert (second, third) == ({"lora": None}, {"rate": 1})
    assert with_budget(GOOD, {}) == GOOD


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rate", "'rate' is not NAME=VALUE"),
        ("rate=0.1,", "'' is not NAME=VALUE"),
        ("rate=0.1 depth=3", "a comma is missing in 'rate=0.1 depth=3'"),
        ("rate=0.1, rate=0.2", "rate appears twice"),
        ("rate=2", "rate: must be from 1e-05 to 1.0, not 2"),
        ("layers=1.5", "layers: must be a whole number"),
        (f"layers={'9' * 400}", "layers: must be a whole number, not '9999"),
        (f"rate={'9' * 5000}", "rate: must be a number, not '9999"),
        ("optimzer=sgd", "did you mean optimizer?"),
        ("lora=false, rank=8", "rank: is not active while lora is false"),
    ],
)
def test_a_mistake_is_told_with_the_text_it_is_in(text, told):
    with pytest.raises(UserError) as caught:
        configurations([text], SPEC)
    assert f'--enqueue "{text}"' in caught.value.message
    assert told in caught.value.message


CHANGES = {"trials": 80, "gpu_hours": 1e-05, "wall_clock": "4h"}
ODD = """\
study: '2024-01-01'
settings: &some {trials: 40, when: 2024-01-01, at: 1:30, on: 1e-5}
budget:
  <<: *some
  per_trial: {epochs: 3}
"""


@pytest.mark.parametrize("text", [GOOD, ODD])
def test_limits_are_replaced_and_added_and_all_else_stays(text):
    before = yaml_source.read(text).value
    changed = yaml_source.read(with_budget(text, CHANGES))
    assert not changed.problems
    assert changed.value == {**before, "budget": {**before["budget"], **CHANGES}}
    assert list(changed.value) == list(before)
