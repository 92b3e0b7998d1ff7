"""The study file as one JSON Schema, for editors: its keys, their meanings and their limits.

It is derived from the models of the study file, the descriptions and settings of tasks, and the
signatures of Optuna's classes. It accepts all that `reading` accepts, and refuses unknown keys,
wrong types and values out of range. Only `reading` finds mistakes that take two keys to see.
"""

import ast
import inspect
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from hpsearch.study_file.methods import (
    CURVE_GP,
    PROMOTION,
    PRUNERS,
    SAMPLERS,
    PromotionArguments,
    arguments_of,
)
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.validation import Model
from trials.contract import Setting
from trials.descriptions.builtin import BUILT_IN, describe
from trials.descriptions.command import COMMAND
from trials.descriptions.description import ASK, Field, TaskDescription

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

TITLE = "A study file of hpsearch"
"""Marks a file as a schema that this program wrote."""

_REQUIRED = ("study", "task", "objective", "budget")
_NULL: Schema = {"type": "null"}
_OWN_CODE = ":"
"""The character that marks a task's kind as a function in the user's own code."""

_TYPES: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
}


class _Described(GenerateJsonSchema):
    """Pydantic's schemas without titles of fields, which would only repeat their keys, and with the
    texts under them. Pydantic would read those from the sources whenever the models are imported,
    which takes longer than all else about them."""

    def model_schema(self, schema: Any) -> Schema:
        """The schema of a model."""
        made = super().model_schema(schema)
        model = schema["cls"]
        texts = _texts(model)
        for name, field in model.model_fields.items():
            if name in texts:
                made["properties"][field.alias or name].setdefault("description", texts[name])
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def study_file_schema() -> Schema:
    """The schema. It imports Optuna, for the arguments of its classes."""
    whole = StudySpec.model_json_schema(schema_generator=_Described)
    definitions = whole["$defs"]
    del definitions["Method"]
    for definition in definitions.values():
        definition.pop("title", None)
    _add_methods(definitions)
    definitions["Parameter"] = whole["properties"]["space"]["additionalProperties"]
    whole["properties"]["space"]["additionalProperties"] = _ref("Parameter")
    own = {"pattern": _OWN_CODE}
    kinds = [
        _one_kind(own, describe("module:function")),
        *(_one_kind({"const": task.kind}, task) for task in (*BUILT_IN.values(), COMMAND, ASK)),
    ]
    return {
        "$schema": DIALECT,
        "title": TITLE,
        "type": "object",
        "properties": _sections(whole["properties"]),
        "required": list(_REQUIRED),
        "additionalProperties": False,
        "allOf": kinds,
        "$defs": dict(sorted(definitions.items())),
    }


def _texts(model: type[Model]) -> dict[str, str]:
    """The text under each field of a model, and of those that it extends; nothing of one that was
    made of a signature."""
    found: dict[str, str] = {}
    for part in reversed(model.__mro__):
        module = sys.modules[part.__module__]
        if issubclass(part, Model) and hasattr(module, part.__name__):
            found |= _texts_in(inspect.getsource(part))
    return found


def _texts_in(definition: str) -> Iterator[tuple[str, str]]:
    made = ast.parse(definition).body[0]
    assert isinstance(made, ast.ClassDef)
    for field, text in itertools.pairwise(made.body):
        match field, text:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(words))):
                yield name, inspect.cleandoc(words)


def _sections(of_the_model: Schema) -> Schema:
    """The top-level keys. An optional one may be empty, which YAML reads as null."""
    sections = {key: part for key, part in of_the_model.items() if key not in ("base", "text")}
    objective = _ref("Objective")
    sections["objective"] = {
        "description": "A metric to minimize or maximize: one objective, or a list.",
        "anyOf": [objective, {"type": "array", "items": objective, "minItems": 1}],
    }
    del sections["objectives"], sections["search"]["default"]
    for key in sections.keys() - set(_REQUIRED):
        sections[key] = _or_empty(sections[key])
    own = {"type": "string", "pattern": _OWN_CODE, "examples": ["my_training:train"]}
    kind = {
        "description": "A kind of task, or package.module:function for your own training code.",
        "anyOf": [{"enum": [*BUILT_IN, COMMAND.kind, ASK.kind]}, own],
    }
    sections["task"] |= {"properties": {"kind": kind}, "required": ["kind"]}
    return sections


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _or_empty(schema: Schema) -> Schema:
    about: Schema = {key: schema.pop(key) for key in ("description", "default") if key in schema}
    return {**about, "anyOf": [schema, _NULL]}


# -------------------------------------------------------------------------- samplers and pruners


def _add_methods(definitions: Schema) -> None:
    """Define the samplers and pruners: a word, or a mapping of `kind` and its arguments."""
    import optuna.pruners
    import optuna.samplers

    curve_gp = _method(CURVE_GP, Model, "A model of whole learning curves; it has no arguments.")
    about = "Pauses trials at rungs; the best of each rung continue from their checkpoints."
    promotion = _method(PROMOTION, PromotionArguments, about)
    samplers = [_of_optuna(optuna.samplers, *names) for names in SAMPLERS.items()]
    pruners = [_of_optuna(optuna.pruners, *names) for names in PRUNERS.items()]
    definitions["Sampler"] = {"anyOf": [curve_gp, *samplers]}
    definitions["OptunaPruner"] = {"anyOf": pruners}
    definitions["Pruner"] = {"anyOf": [promotion, _ref("OptunaPruner")]}
    search = definitions["Search"]["properties"]
    for key, name, default in (("sampler", "Sampler", CURVE_GP), ("pruner", "Pruner", PROMOTION)):
        about = search[key]["description"]
        search[key] = {"description": about, "default": default, **_ref(name)}


def _of_optuna(module: Any, name: str, class_name: str) -> Schema:
    return _method(name, arguments_of(getattr(module, class_name)), f"Optuna's {class_name}.")


def _method(name: str, arguments: type[Model], about: str) -> Schema:
    of_arguments = arguments.model_json_schema(schema_generator=_Described)
    properties = of_arguments.get("properties", {})
    if "wrapped_pruner" in properties:
        properties["wrapped_pruner"] = {"anyOf": [_ref("OptunaPruner"), _NULL]}
    required = of_arguments.get("required", [])
    kind = {"kind": {"const": name}}
    mapping = _mapping({**kind, **properties}, ["kind", *required])
    options = [mapping] if required else [{"const": name}, mapping]
    return {"description": about, "anyOf": options}


def _mapping(properties: Schema, required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False}


# ----------------------------------------------------------------------------------------- tasks


def _one_kind(kind: Schema, task: TaskDescription) -> Schema:
    """The condition for a kind of task: its keys, and the settings and metrics that it knows."""
    keys: Schema = {name: _field(field) for name, field in task.fields.items()}
    required = [name for name, field in task.fields.items() if field.required]
    then: Schema = {"task": _mapping({"kind": True, **keys}, required)}
    if task.settings is not None:
        fixed = {name: _setting(setting) for name, setting in task.settings.items()}
        searched = {
            name: {"description": setting.about, **_ref("Parameter")}
            for name, setting in task.settings.items()
        }
        then["settings"] = _or_empty(_mapping(fixed, []))
        then["space"] = _or_empty(_mapping(searched, []))
    if task.metrics is not None:
        metric = {"enum": sorted(task.metrics)}
        measured = {"properties": {"metric": metric}}
        then["objective"] = {**measured, "items": measured}
        then["constraints"] = {"propertyNames": metric}
    of_kind = {"type": "object", "required": ["kind"], "properties": {"kind": kind}}
    condition = {"required": ["task"], "properties": {"task": of_kind}}
    return {"if": condition, "then": {"properties": then}}


def _field(field: Field) -> Schema:
    types = [_TYPES[kind] for kind in field.types]
    limits = json.loads(json.dumps(dict(field.limits)))  # tuples as lists
    return {"description": field.about, "type": types, **limits}


def _setting(setting: Setting) -> Schema:
    limits = {"minimum": setting.low, "exclusiveMinimum": setting.above, "maximum": setting.high}
    bounds = {keyword: limit for keyword, limit in limits.items() if limit is not None}
    value: Schema = {"type": _TYPES[setting.type], **bounds}
    if setting.choices is not None:
        value["enum"] = list(setting.choices)
    options = [value]
    if setting.word is not None:
        options.append({"const": setting.word})
    if setting.nullable:
        options.append(_NULL)
    return {"description": setting.about, "default": setting.default, "anyOf": options}
