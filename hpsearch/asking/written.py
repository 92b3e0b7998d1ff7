"""A study file as a mapping, a path or its text; without a task, its trials are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hpsearch.errors import UserError
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse, text_of
from hpsearch.study_file.text import yaml_source
from trials.descriptions.asked import ASK

FILES = (".yaml", ".yml")

LONGEST_PLACE = 1000
"""Characters of the name of a place in a study file: a mapping that contains itself has longer
ones."""

Written = Mapping[str, Any] | str | os.PathLike[str]
"""A study file as users give it: its content as a mapping, its path, or its text."""


def read(spec: Written) -> StudySpec:
    """Read a study file; where it has no task, one is added that says that trials are asked for.

    Relative paths in it start in its folder, or in the current one where it is not a file.

    Raises:
        UserError: It is none of these, or there is no such file.
        SpecError: It has mistakes; the error lists them all.
    """
    if isinstance(spec, Mapping):
        return parse(with_task(_dumped(spec)), base=Path.cwd(), name="spec")
    if isinstance(spec, str) and "\n" in spec:
        return parse(with_task(spec), base=Path.cwd(), name="spec")
    if not isinstance(spec, str | os.PathLike):
        what = f"spec is of type {type(spec).__name__}"
        raise UserError(what, "give a mapping, the path of a study file, or its text")
    path = Path(spec)
    return parse(with_task(text_of(path)), base=path.resolve().parent, name=path.name)


def is_same(one: StudySpec, other: StudySpec) -> bool:
    """Whether two study files say the same, however they are written and wherever they lie."""
    elsewhere = {"text": "", "base": Path()}
    return one.model_copy(update=elsewhere) == other.model_copy(update=elsewhere)


def with_task(text: str) -> str:
    """The text of a study file with a task; the same where it has one, or is not a mapping."""
    value = yaml_source.read(text).value
    if not isinstance(value, dict) or value.get("task") is not None:
        return text
    if "task" not in value:
        added = f"{text.rstrip()}\ntask: {{kind: {ASK.kind}}}\n"
        if yaml_source.read(added).value == {**value, "task": {"kind": ASK.kind}}:
            return added
    return _dumped({**value, "task": {"kind": ASK.kind}})


def _dumped(spec: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(plain(spec, "spec"), sort_keys=False, allow_unicode=True)
    return text


def plain(value: Any, where: str) -> Any:
    """A value as YAML has it: tuples as lists, any mapping as a dict, numbers as Python's.

    Args:
        value: The value.
        where: Its name, for errors.

    Raises:
        UserError: YAML has no such value.
    """
    if len(where) > LONGEST_PLACE:
        raise UserError(f"{where[:60]}... is nested too deeply", "does it contain itself?")
    if isinstance(value, Mapping):
        return {_scalar(key): plain(each, f"{where}[{key!r}]") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, f"{where}[{i}]") for i, each in enumerate(value)]
    scalar = _scalar(value)
    if scalar is None or type(scalar) in (bool, int, float, str):
        return scalar
    what = f"{where} is of type {type(value).__name__}"
    raise UserError(what, "a study file has mappings, lists, numbers, text, true, false and null")


def _scalar(value: Any) -> Any:
    """A number or text of numpy's or torch's as Python's; anything else as it is."""
    if isinstance(value, str):
        return str(value)
    try:
        return value.item()
    except (AttributeError, TypeError, ValueError, RuntimeError):  # it has none, or several
        return value
