"""Whatever text or values come in, a study file and a space are read or refused: never anything
else."""

import contextlib
from pathlib import Path

import jsonschema
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.errors import SpecError
from hpsearch.study_file import space
from hpsearch.study_file.levels import rung_levels, step_scale, trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from hpsearch.study_file.schema import study_file_schema
from support.files.study_files import GOOD
from trials import tasks
from trials.contract import TaskError
from trials.descriptions import yaml_source
from trials.descriptions.builtin import BUILT_IN

VALIDATOR = jsonschema.Draft202012Validator(study_file_schema())
ODD = st.sampled_from(["tpe", "2h", "1e-4", 10**400, -(10**20), 1e300, 5e-324])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | ODD
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
)
WRITTEN = "batch_size learning_rate + - 1 * % = < >= and or not in is null ( ) , 'x' 1e-4 ; --"
WORDS = st.sampled_from([*WRITTEN.split(), "- 1", "`a b`"])
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


def is_built(spec: StudySpec) -> bool:
    """Whether its task is right, too, as far as that goes without data."""
    with contextlib.suppress(TaskError):
        return spec.task["kind"] not in BUILT_IN or tasks.load(spec.task, spec.base) is not None
    return False


def read(text: str) -> StudySpec | None:
    """The study file, which the schema accepts, and whose levels go together; None if it was
    refused with a place and a text for each problem."""
    try:
        spec = parse(text, base=Path("/nowhere"))
    except SpecError as error:
        spec, problems = None, error.problems
    if spec is None:
        assert problems
        assert all(problem.startswith("study.yaml:") for problem in problems)
        return None
    assert not is_built(spec) or VALIDATOR.is_valid(yaml_source.read(text).value)
    assert trial_budget(spec).report_at[-1] == rung_levels(spec)[-1]
    assert step_scale(spec) >= 1
    return spec


SIGNS = st.sampled_from("ab:-[]{}&*!#'\"\n\t 0.1e,?<|>%@`~=\x00é")


@given(st.text() | st.text(SIGNS, max_size=40))
def test_any_text_is_a_study_file_or_is_refused(text):
    read(text)


@given(st.integers(0, len(GOOD)), st.integers(0, 20), st.text(max_size=10))
def test_a_study_file_with_any_piece_replaced_is_read_or_refused(at, length, piece):
    read(GOOD[:at] + piece + GOOD[at + length :])


@st.composite
def damaged_files(draw: st.DrawFn) -> str:
    """The good study file with a few of its values replaced by anything at all."""
    document = yaml.safe_load(GOOD)
    for _ in range(draw(st.integers(1, 3))):
        at = document
        key = draw(st.sampled_from(sorted(at)))
        while isinstance(at[key], dict) and at[key] and draw(st.booleans()):
            at = at[key]
            key = draw(st.sampled_from(sorted(at)))
        at[key] = draw(VALUES)
    return yaml.safe_dump(document, allow_unicode=True)


@given(damaged_files())
def test_a_study_file_with_any_values_in_it_is_read_or_refused(text):
    read(text)


@given(
    st.fixed_dictionaries({"a": PARAMETER, "b": PARAMETER}),
    st.dictionaries(st.sampled_from("abc"), SCALARS),
)
def test_any_space_is_refused_or_judges_any_configuration(parameters, params):
    written = {**yaml.safe_load(GOOD), "task": {"kind": "own.module:train"}, "space": parameters}
    for section in ("settings", "enqueue"):
        written.pop(section)
    spec = read(yaml.safe_dump(written, allow_unicode=True))
    if spec is not None:
        assert all(problem.what for problem in space.problems_with(spec.space, params))


@given(st.text() | st.lists(WORDS, max_size=12).map(" ".join))
def test_any_condition_and_any_requirement_is_read_or_refused(text):
    written = yaml.safe_load(GOOD)
    conditional = {"type": "int", "low": 1, "high": 9, "when": text}
    written["space"] = {**written["space"], "patience": conditional}
    read(yaml.safe_dump({**written, "requires": [text]}, allow_unicode=True))
