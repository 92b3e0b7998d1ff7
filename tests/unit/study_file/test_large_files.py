"""Study files that are read in seconds, or refused, though they stand for very much."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.errors import SpecError
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from hpsearch.study_file.space import ordered
from support.studies.small import PLAIN

X = {"type": "float", "low": 0.0, "high": 1.0}
BIT = {"type": "categorical", "choices": [0, 1]}


def read(**changes: Any) -> StudySpec:
    return parse(yaml.safe_dump({**PLAIN, **changes}, sort_keys=False), base=Path("/nowhere"))


def test_conditions_on_conditions_are_followed_once():
    """Each parameter depends on the two before it, so paths to the first one are innumerable."""
    space: dict[str, Any] = {"p0": BIT, "p1": BIT}
    for i in range(2, 200):
        space[f"p{i}"] = {**BIT, "when": {f"p{i - 1}": 0, f"p{i - 2}": 0}}
    backwards = dict(reversed(space.items()))
    found = read(space=backwards, requires=["p0 == 0"])
    assert ordered(found.space)[2:] == list(space)[2:]


def test_a_long_chain_of_conditions_is_no_recursion():
    space = {f"p{i}": {**BIT, "when": {f"p{i - 1}": 0}} for i in range(1, 1500)}
    found = read(space={"p0": BIT, **space}, requires=["p0 == 0"], search={"sampler": "tpe"})
    assert len(ordered(found.space)) == 1500


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"requires": [" or ".join(["x > 2"] * 2000)]}, "requires[0]: has 17996 letters"),
        ({"requires": ["x > 2"] * 500}, "requires[9]: none of 10000 random configurations"),
        (
            {"space": {"x": BIT, "y": {**X, "when": {"x": [0] * 1001}}}},
            "lists 1001 values of x, and may list 1000",
        ),
        (
            {
                "space": {"c": {"type": "categorical", "choices": [f"c{i}" for i in range(2001)]}},
                "search": {"sampler": "curve_gp"},
            },
            "search.sampler: curve_gp models at most 2000 parameters and choices in all, not 2001",
        ),
        (
            {
                "space": {"x": X, "y": X},
                "requires": ["x > 0.5 or y > 2"],
                "enqueue": [{"x": 0.1}] * 500,
            },
            "enqueue[9]: of 10000 configurations with these values none keeps all requirements",
        ),
    ],
)
def test_what_would_take_very_long_is_refused(changes, said):
    with pytest.raises(SpecError) as caught:
        read(**changes)
    assert said in str(caught.value)


def test_choices_that_are_numbers_count_as_one_feature():
    space = {"c": {"type": "categorical", "choices": list(range(3000))}}
    found = read(space=space, search={"sampler": "curve_gp"})
    assert found.space["c"].size == 3000
