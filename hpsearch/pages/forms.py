"""The fields of forms that ask something of a study, and what stood in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hpsearch.brain.requests import LIMITS
from hpsearch.creation.study import spec_of
from hpsearch.domain.records import StudyState
from hpsearch.errors import HpsearchError
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.parameters import CategoricalParameter, IntParameter, Parameter
from hpsearch.study_file.text.configurations import value_of
from hpsearch.study_file.types import same
from hpsearch.words.numbers import number

Given = Mapping[str, str]
"""What stood in the fields of a form, by their names."""
EMPTY: Given = MappingProxyType({})
PARAMETER = "parameter:"
"""Begins the name of a field for a parameter."""


@dataclass(frozen=True)
class FormField:
    """A field of a form.

    Args:
        name: By which it is sent.
        label: Above it.
        value: What stands in it; of a field with choices, the place of the chosen one.
        hint: What it may be.
        choices: What can be chosen, as texts; empty where anything can be written.
    """

    name: str
    label: str
    value: str
    hint: str
    choices: Sequence[str] = ()


def is_over(study: StudyHead) -> bool:
    """Whether nothing can be asked of a study any more, until somebody resumes it."""
    return study.driver is None and study.state is StudyState.FINISHED


def spec_for_forms(store: Store, name: str) -> StudySpec | None:
    """The study file, which says what can be asked for; None if the study has no file, or this
    version of the program cannot read it."""
    record = store.find_study(name)
    if not record.spec:
        return None
    try:
        return spec_of(record)
    except HpsearchError:
        return None


def budget_fields(spec: StudySpec | None, given: Given) -> list[FormField]:
    """A field for each limit that the study has."""
    if spec is None:
        return []
    budget = spec.budget
    limits = {
        "trials": (budget.trials, "Trials", "a whole number"),
        "gpu_hours": (budget.gpu_hours, "GPU hours", "a number"),
        "cost": (budget.cost, "Cost", "a number"),
        "wall_clock": (budget.wall_clock_s, "Wall clock", "such as 12h"),
    }
    assert set(limits) == set(LIMITS)
    fields = []
    for name, (most, label, kind) in limits.items():
        if most is None:
            continue
        now = f"{number(most / 3600)} h" if name == "wall_clock" else number(most)
        hint = f"{kind}, more than {now}"
        fields.append(FormField(name, label, given.get(name, ""), hint))
    return fields


def limits_of(given: Given) -> dict[str, Any]:
    """The new limits of a form that was sent; those that were left empty stay as they are."""
    written = {name: given.get(name, "").strip() for name in LIMITS}
    return {name: value_of(text) for name, text in written.items() if text}


def parameter_fields(
    spec: StudySpec | None, params: Mapping[str, Any], given: Given
) -> list[FormField]:
    """A field for each parameter of the space.

    Args:
        spec: The study file.
        params: What they begin with; empty where a parameter is missing.
        given: What stood in them when the form was sent, if it was.
    """
    space = {} if spec is None else spec.space
    fields = []
    for name, parameter in space.items():
        sent = PARAMETER + name
        begins = _written(parameter, params[name]) if name in params else ""
        choices = _choices(parameter)
        value = given.get(sent, begins)
        fields.append(FormField(sent, name, value, _hint(parameter), choices))
    return fields


def params_of(spec: StudySpec, given: Given) -> dict[str, Any]:
    """The configuration in a form that was sent; parameters that were left empty are not in it."""
    params = {}
    for name, parameter in spec.space.items():
        text = given.get(PARAMETER + name, "").strip()
        if text:
            params[name] = _value(parameter, text)
    return params


def _value(parameter: Parameter, text: str) -> Any:
    if not isinstance(parameter, CategoricalParameter):
        return value_of(text)
    is_place = text.isascii() and text.isdecimal() and len(text) < 10
    place = int(text) if is_place else -1
    return parameter.choices[place] if 0 <= place < len(parameter.choices) else text


def _written(parameter: Parameter, value: Any) -> str:
    if not isinstance(parameter, CategoricalParameter):
        return str(value)
    alike = [n for n, choice in enumerate(parameter.choices) if same(choice, value)]
    return str(alike[0]) if alike else ""


def _choices(parameter: Parameter) -> Sequence[str]:
    if not isinstance(parameter, CategoricalParameter):
        return ()
    return ["null" if each is None else str(each) for each in parameter.choices]


def _hint(parameter: Parameter) -> str:
    if isinstance(parameter, CategoricalParameter):
        return ""
    kind = "whole number, " if isinstance(parameter, IntParameter) else ""
    return f"{kind}{number(parameter.low)} to {number(parameter.high)}"
