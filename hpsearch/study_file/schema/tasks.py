"""The keys, settings and metrics of each kind of task, as JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hpsearch.study_file.schema.terms import (
    NULL,
    PARAMETERS,
    Schema,
    either,
    mapping,
    or_empty,
    ref,
)
from trials.contract import Setting
from trials.descriptions.description import Field, TaskDescription
from trials.settings import TABLE

OWN_CODE = ":"
"""The character that marks a task's kind as a function in the user's own code."""

PARAMETER = "A number on a scale or a grid, a whole number, or one of a few values."
"""The description of a parameter whose meaning only the user's code knows."""

_TYPES: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
}


def of_any_parameter(kind: Schema, task: TaskDescription) -> Schema:
    """The condition for a kind of task that takes any parameter, such as a command.

    Args:
        kind: The schema of `kind` under `task`.
        task: The task.
    """
    return {
        "if": _of_kind(kind),
        "then": {
            "properties": {
                "task": _task_part(task),
                "space": {
                    "propertyNames": {"pattern": "^[^$]"},
                    "additionalProperties": {"description": PARAMETER},
                },
            }
        },
    }


def one_kind(definitions: Schema, task: TaskDescription) -> Schema:
    """The condition for a built-in kind of task; defines the settings that only it has."""
    settings = task.settings or {}
    names: dict[str, str] = {}
    for name, setting in settings.items():
        shared = TABLE.get(name) == setting
        names[name] = name if shared else f"{task.kind}.{name}"
        if not shared:
            add_setting(definitions, names[name], setting)
    fixed = {name: ref(f"setting.{names[name]}") for name in settings}
    searched = {name: ref(f"parameter.{names[name]}") for name in settings}
    metric = {"enum": sorted(task.metrics or ())}
    then: Schema = {
        "task": _task_part(task),
        "settings": or_empty(mapping(fixed)),
        "space": mapping(searched),
        "objective": {
            "properties": {"metric": metric},
            "items": {"properties": {"metric": metric}},
        },
        "constraints": {"propertyNames": metric},
        "resources": {"properties": {"gpu": {"maximum": 1}}},
    }
    if not task.tokens:
        then["budget"] = {"properties": {"per_trial": {"properties": {"tokens": NULL}}}}
    return {"if": _of_kind({"const": task.kind}), "then": {"properties": then}}


def _task_part(task: TaskDescription) -> Schema:
    keys = {name: _field(field) for name, field in task.fields.items()}
    required = [name for name, field in task.fields.items() if field.required]
    return mapping({"kind": True, **keys}, required)


def _of_kind(kind: Schema) -> Schema:
    task = {"type": "object", "required": ["kind"], "properties": {"kind": kind}}
    return {"required": ["task"], "properties": {"task": task}}


def _field(field: Field) -> Schema:
    types = [_TYPES[kind] for kind in field.types]
    limits = json.loads(json.dumps(dict(field.limits)))  # tuples as lists
    return {"description": field.about, "type": types, **limits}


def add_setting(definitions: Schema, name: str, setting: Setting) -> None:
    """Define the value of a setting, and the parameter that searches it."""
    limits = {"minimum": setting.low, "exclusiveMinimum": setting.above, "maximum": setting.high}
    bounds = {keyword: limit for keyword, limit in limits.items() if limit is not None}
    value: Schema = {"type": _TYPES[setting.type], **bounds}
    if setting.choices is not None:
        value["enum"] = list(setting.choices)
    options = [value]
    if setting.word is not None:
        options.append({"const": setting.word})
    if setting.nullable:
        options.append(NULL)
    about = {"description": setting.about}
    definitions[f"setting.{name}"] = {**about, "default": setting.default, **either(options)}

    by_type = {float: ["float", "int", "categorical"], int: ["int", "categorical"]}
    fitting = {
        "type": {"enum": by_type.get(setting.type, ["categorical"])},
        "low": bounds,
        "high": bounds,
        "choices": {"items": ref(f"setting.{name}")},
    }
    definitions[f"parameter.{name}"] = {
        **about,
        "properties": fitting,
        "oneOf": [ref(kind) for kind in PARAMETERS],
    }
