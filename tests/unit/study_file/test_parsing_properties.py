"""Whatever text or values come in, a study file and a space are read or refused: never anything
else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.errors import SpecError
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from support.files.study_files import GOOD

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
)
WORDS = st.sampled_from(
    [
        "batch_size",
        "learning_rate",
        "+",
        "- 1",
        "*",
        "%",
        "=",
        "<",
        ">=",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "(",
        ")",
        ",",
        "'x'",
        "1e-4",
        ";",
        "--",
        "`a b`",
    ]
)
PARAMETER = st.fixed_dictionaries(
    {"type": st.sampled_from(["float", "int", "categorical"])},
    optional={
        "low": SCALARS,
        "high": SCALARS,
        "log": st.booleans(),
        "step": SCALARS,
        "choices": st.lists(SCALARS, max_size=4),
        "when": st.dictionaries(st.sampled_from(["a", "b"]), SCALARS, max_size=2),
    },
)


def read(text: str) -> StudySpec | None:
    """The study file, or None if it was refused with a place and a text for each problem."""
    try:
        return parse(text, base=Path("/nowhere"))
    except SpecError as error:
        problems = error.problems
    assert problems
    assert all(problem.startswith("study.yaml:") for problem in problems)
    return None


@given(st.text())
def test_any_text_is_a_study_file_or_is_refused(text: str) -> None:
    read(text)


@given(st.integers(0, len(GOOD)), st.integers(0, 20), st.text(max_size=10))
def test_a_study_file_with_any_piece_replaced_is_read_or_refused(
    at: int, length: int, piece: str
) -> None:
    read(GOOD[:at] + piece + GOOD[at + length :])


@given(st.sampled_from(sorted(yaml.safe_load(GOOD))), VALUES)
def test_a_study_file_with_any_value_in_a_section_is_read_or_refused(
    section: str, value: Any
) -> None:
    read(yaml.safe_dump({**yaml.safe_load(GOOD), section: value}, allow_unicode=True))


@given(
    st.fixed_dictionaries({"a": PARAMETER, "b": PARAMETER}),
    st.dictionaries(st.sampled_from("abc"), SCALARS),
)
def test_any_space_is_refused_or_judges_any_configuration(
    parameters: dict[str, Any], params: dict[str, Any]
) -> None:
    written = {**yaml.safe_load(GOOD), "task": {"kind": "own.module:train"}, "space": parameters}
    for section in ("settings", "enqueue"):
        written.pop(section)
    spec = read(yaml.safe_dump(written, allow_unicode=True))
    if spec is not None:
        assert all(problem.what for problem in space.problems_with(spec.space, params))


@given(st.text() | st.lists(WORDS, max_size=12).map(" ".join))
def test_any_condition_and_any_requirement_is_read_or_refused(text: str) -> None:
    written = yaml.safe_load(GOOD)
    conditional = {"type": "int", "low": 1, "high": 9, "when": text}
    written["space"] = {**written["space"], "patience": conditional}
    read(yaml.safe_dump({**written, "requires": [text]}, allow_unicode=True))
