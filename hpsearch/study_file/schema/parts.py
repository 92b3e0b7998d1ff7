"""The parts of the JSON Schema: samplers and pruners with their arguments, and the keys, settings
and metrics of each kind of task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from hpsearch.study_file.levels import PROMOTION
from hpsearch.study_file.methods import (
    CURVE_GP,
    PRUNERS,
    SAMPLERS,
    PromotionArguments,
    arguments_of,
)
from hpsearch.study_file.types import Model
from trials.contract import Setting
from trials.descriptions.description import Field, TaskDescription
from trials.settings import TABLE

Schema = dict[str, Any]

NULL: Schema = {"type": "null"}

PARAMETERS = ("FloatParameter", "IntParameter", "CategoricalParameter")
"""The models of parameters, by their names in the schema."""


class WithoutTitles(GenerateJsonSchema):
    """Pydantic's schemas without titles of fields, which would only repeat their keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


def ref(name: str) -> Schema:
    """A reference to a definition of the schema."""
    return {"$ref": f"#/$defs/{name}"}


def or_empty(schema: Schema) -> Schema:
    """The same schema, or null; its description and default stay outside."""
    about: Schema = {key: schema.pop(key) for key in ("description", "default") if key in schema}
    options = schema.pop("anyOf", None) or [schema]
    return {**about, "anyOf": [*options, NULL]}


def mapping(properties: Schema, required: Iterable[str] = ()) -> Schema:
    """A mapping with these keys and no others."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


# -------------------------------------------------------------------------- samplers and pruners


def add_methods(definitions: Schema) -> None:
    """Define what `search` can name: a word, or a mapping of `kind` and its arguments."""
    import optuna.pruners
    import optuna.samplers

    curve_gp = _method([CURVE_GP], Model, "A model of whole learning curves; it has no arguments.")
    about = "Pauses trials at rungs; the best of each rung continue from their checkpoints."
    promotion = _method([PROMOTION], PromotionArguments, about)
    promotion["anyOf"][1]["not"] = {"required": ["rungs", "first_rung"]}
    pruners = _of_optuna(optuna.pruners, PRUNERS)
    definitions["Sampler"] = {"anyOf": [curve_gp, *_of_optuna(optuna.samplers, SAMPLERS)]}
    definitions["OptunaPruner"] = {"anyOf": pruners}
    definitions["Pruner"] = {"anyOf": [promotion, ref("OptunaPruner")]}
    for key, name in (("sampler", "Sampler"), ("pruner", "Pruner")):
        section = definitions["Search"]["properties"]
        kept = {part: section[key][part] for part in ("description", "default")}
        section[key] = {**kept, "allOf": [ref(name)]}


def _of_optuna(module: Any, short_names: Mapping[str, str]) -> list[Schema]:
    found = []
    for name in dict.fromkeys(short_names.values()):
        names = [name, *(short for short, long in short_names.items() if long == name)]
        found.append(_method(names, arguments_of(getattr(module, name)), f"Optuna's {name}."))
    return found


def _method(names: list[str], arguments: type[Model], about: str) -> Schema:
    of_arguments = arguments.model_json_schema(schema_generator=WithoutTitles)
    properties = of_arguments.get("properties", {})
    if "wrapped_pruner" in properties:
        properties["wrapped_pruner"] = {"anyOf": [ref("OptunaPruner"), NULL]}
    required = of_arguments.get("required", [])
    written = {
        "type": "object",
        "properties": {"kind": {"enum": names}, **properties},
        "required": ["kind", *required],
        "additionalProperties": False,
    }
    if required:
        return {"description": about, **written}
    return {"description": about, "anyOf": [{"enum": names}, written]}


# ----------------------------------------------------------------------------------------- tasks

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
    """The condition for a `kind` of task that takes any parameter, such as a command."""
    space = {
        "propertyNames": {"pattern": "^[^$]"},
        "additionalProperties": {"description": PARAMETER},
    }
    then = {"properties": {"task": _task_part(task), "space": space}}
    return {"if": _of_kind(kind), "then": then}


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
    measured = {"properties": {"metric": metric}}
    then: Schema = {
        "task": _task_part(task),
        "settings": or_empty(mapping(fixed)),
        "space": mapping(searched),
        "objective": {**measured, "items": measured},
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
    value = value if len(options) == 1 else {"anyOf": options}
    definitions[f"setting.{name}"] = {**about, "default": setting.default, **value}

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
