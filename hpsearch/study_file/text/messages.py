"""Pydantic's errors in the words of a study file: which key, what is wrong, and what to do."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hpsearch.study_file.text.yaml_source import place
from hpsearch.study_file.types import shown
from trials.contract import Problem
from trials.settings import nearest

_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping such as {{type: float, low: 0.1, high: 1.0}}",
    "list_type": "a list",
    "tuple_type": "a list",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "{expected}",
}
"""The wanted kind of value, by pydantic's type of error."""

_PARAMETER_TYPES = ("float", "int", "categorical")


def problems_of(
    error: ValidationError, model: type[BaseModel] | None, where: str = "", *, skip: int = 0
) -> list[Problem]:
    """Every mistake of a validation as a problem with its dotted place.

    Args:
        error: What pydantic found.
        model: The model that was validated; None for a parameter whose type is missing or unknown.
        where: The place of the model in the study file.
        skip: How many leading parts of pydantic's places are not in the file: a union's tag is one.
    """
    problems: list[Problem] = []
    for details in error.errors(include_url=False):
        loc = details["loc"][skip:]
        if details["type"] != "mistakes":
            problems.append(_problem_of(details, loc, model, where))
            continue
        here = _joined(where, loc)
        for key, what in details["ctx"]["mistakes"]:
            problems.append(Problem(place(here, key) if key else here, what))
    return problems


def _problem_of(
    details: ErrorDetails, loc: tuple[int | str, ...], model: type[BaseModel] | None, where: str
) -> Problem:
    kind = details["type"]
    here = _joined(where, loc)
    if kind == "missing":
        fields = _fields_at(model, loc[:-1])
        return Problem(here, _missing(str(loc[-1]), fields))
    if kind == "extra_forbidden":
        hint = nearest(str(loc[-1]), _fields_at(model, loc[:-1]))
        return Problem(here, f"unknown key; {hint}")
    if kind == "union_tag_not_found":
        return Problem(here, "has no type; add type: float, type: int or type: categorical")
    if kind == "union_tag_invalid":
        tag = details["ctx"]["tag"]
        hint = nearest(tag, _PARAMETER_TYPES)
        return Problem(f"{here}.type", f"{shown(tag)} is not a type of parameter; {hint}")
    if loc and loc[-1] == "[key]":
        around = _joined(where, loc[:-1])
        return Problem(around, "has a key that is not text; put it in quotes")
    return Problem(here, _wrong_value(details))


def _wrong_value(details: ErrorDetails) -> str:
    kind, value = details["type"], details["input"]
    if kind == "worded":
        return f"{details['msg']}, not {shown(value)}"
    if kind not in _WANTED:
        return details["msg"]
    wanted = _WANTED[kind].format(**details.get("ctx", {}))
    return f"must be {wanted}, not {shown(value)}{_hint(kind, value)}"


def _hint(kind: str, value: Any) -> str:
    if kind == "string_type":
        return "; put it in quotes"
    wants_number = kind in ("int_type", "float_type")
    if not wants_number or not isinstance(value, str):
        return ""
    try:
        number = float(value)
    except ValueError:
        return ""
    if "e" not in value.lower():
        return "; write it without quotes"
    is_whole = kind == "int_type" and number.is_integer()
    better = str(int(number)) if is_whole else _with_point(value)
    return f" (YAML reads {value} as text; write {better})"


def _with_point(value: str) -> str:
    """1e-4 as YAML reads it as a number: with a point, and a sign in the exponent."""
    digits, _, exponent = value.lower().partition("e")
    point = "" if "." in digits else ".0"
    sign = "" if exponent[:1] in ("+", "-") else "+"
    return f"{digits}{point}e{sign}{exponent}"


def _missing(key: str, fields: dict[str, Any]) -> str:
    examples = fields[key].examples if key in fields else None
    shown_ones = " or ".join(f"{key}: {example}" for example in examples or ())
    return f"is missing; add {shown_ones or f'{key}: and its value'}"


def _joined(where: str, loc: Sequence[int | str]) -> str:
    for key in loc:
        where = place(where, key)
    return where


def _fields_at(model: type[BaseModel] | None, loc: Sequence[int | str]) -> dict[str, Any]:
    for key in loc:
        if isinstance(key, int):  # an item of a list is of the list's model
            continue
        field = _by_file_name(model).get(key)
        model = _model_in(field.annotation) if field is not None else None
    return _by_file_name(model)


def _by_file_name(model: type[BaseModel] | None) -> dict[str, Any]:
    if model is None:
        return {}
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in typing.get_args(annotation):
        model = _model_in(part)
        if model is not None:
            return model
    return None
