"""The fields of forms that make requests to a study, and their values when they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from starlette.exceptions import HTTPException

from hpsearch.domain.numbers import number
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import HpsearchError
from hpsearch.running.creation.study import spec_of
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.parameters import CategoricalParameter, IntParameter, Parameter
from hpsearch.study_file.text import value_of
from trials.settings import as_scalar

Form = Mapping[str, str]
"""The values of the fields of a form that was sent, by their names."""
EMPTY: Form = MappingProxyType({})
PARAMETER = "parameter:"
"""The beginning of the name of a field for a parameter."""
LIMITS = {
    "trials": ("Trials", "a whole number"),
    "gpu_hours": ("GPU hours", "a number"),
    "cost": ("Cost", "a number"),
    "wall_clock": ("Wall clock", "such as 12h"),
}
"""The label and the kind of the field for each limit of a budget."""


@dataclass(frozen=True)
class FormField:
    """A field of a form."""

    name: str
    label: str
    value: str
    hint: str
    choices: Sequence[str] = ()
    """The texts that can be chosen; empty for a field of free text."""


def fields_of(study: StudyRecord | None, params: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """The fields of the forms of a page, as `form` has them, or else `params`; none without a
    study whose file this version of the program can read."""
    spec = None
    if study is not None and study.spec:
        with suppress(HpsearchError):
            spec = spec_of(study)
    return {
        "limits": _budget_fields(spec, form),
        "parameters": _parameter_fields(spec, params, form),
        "why": form.get("why", ""),
    }


def number_in(text: str) -> int:
    """A whole number that a form or an address names. Raises HTTPException if it is not one."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise HTTPException(400, "trials and pages are named by whole numbers")
    return int(text)


def _budget_fields(spec: StudySpec | None, form: Form) -> list[FormField]:
    """A field for each limit that the study has."""
    if spec is None:
        return []
    budget = spec.budget
    hours = None if budget.wall_clock_s is None else f"{number(budget.wall_clock_s / 3600)} h"
    most = {
        "trials": budget.trials,
        "gpu_hours": budget.gpu_hours,
        "cost": budget.cost,
        "wall_clock": hours,
    }
    fields = []
    for name, limit in most.items():
        if limit is not None:
            label, kind = LIMITS[name]
            hint = f"{kind}, more than {limit if isinstance(limit, str) else number(limit)}"
            fields.append(FormField(name, label, form.get(name, ""), hint))
    return fields


def limits_of(form: Form) -> dict[str, Any]:
    """The new limits in a form; those that were left empty stay as they are."""
    given = {name: form.get(name, "").strip() for name in LIMITS}
    return {name: value_of(text) for name, text in given.items() if text}


def _parameter_fields(
    spec: StudySpec | None, params: Mapping[str, Any], form: Form
) -> list[FormField]:
    fields = []
    for name, parameter in ({} if spec is None else spec.space).items():
        sent, hint, choices = PARAMETER + name, "", list[str]()
        if isinstance(parameter, CategoricalParameter):
            choices = [_text(choice) for choice in parameter.choices]
        else:
            kind = "whole number, " if isinstance(parameter, IntParameter) else ""
            hint = f"{kind}{number(parameter.low)} to {number(parameter.high)}"
        begins = _text(params[name]) if name in params else ""
        fields.append(FormField(sent, name, form.get(sent, begins), hint, choices))
    return fields


def params_of(spec: StudySpec, form: Form) -> dict[str, Any]:
    """The configuration in a form; parameters that were left empty are not in it."""
    given = {name: form.get(PARAMETER + name, "").strip() for name in spec.space}
    return {name: _value(spec.space[name], text) for name, text in given.items() if text}


def _value(parameter: Parameter, text: str) -> Any:
    if not isinstance(parameter, CategoricalParameter):
        return value_of(text)
    choices = {_text(choice): choice for choice in parameter.choices}
    return choices.get(text, text)


def _text(value: Any) -> str:
    return "null" if value is None else str(as_scalar(value))
