"""The study file as one JSON Schema, for editors: its keys, their meanings and their limits.

Everything is derived: the sections from the models of the study file, settings from the table of
each task, its keys from its description, and the arguments of samplers and pruners from Optuna.

The schema accepts all that `reading` accepts. It refuses unknown keys, wrong types and values
out of range. Only `reading` finds mistakes that take two parts of a file to see, such as a
parameter that depends on another one that does not exist.
"""

from __future__ import annotations

from hpsearch.study_file.levels import PROMOTION
from hpsearch.study_file.methods import CURVE_GP
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.schema import parts
from hpsearch.study_file.schema.parts import NULL, OWN_CODE, PARAMETERS, Schema, or_empty, ref
from hpsearch.study_file.trackers import TRACKERS
from hpsearch.study_file.types import SCALAR_SCHEMA
from trials.contract import Unit
from trials.descriptions.builtin import BUILT_IN, describe
from trials.descriptions.command import COMMAND
from trials.descriptions.description import ASK
from trials.descriptions.function import OPTUNA
from trials.settings import TABLE

DIALECT = "https://json-schema.org/draft/2020-12/schema"

TITLE = "A study file of hpsearch"
"""Marks a file as a schema that this program wrote."""

_REQUIRED = ("study", "task", "objective", "budget")
"""The keys that every study file has."""


def study_file_schema() -> Schema:
    """The schema. It imports Optuna, for the arguments of its classes."""
    whole = StudySpec.model_json_schema(schema_generator=parts.WithoutTitles)
    definitions = whole["$defs"]
    del definitions["Method"]
    for definition in definitions.values():
        del definition["title"]
    for name in PARAMETERS:  # the descriptions of the settings take their place
        del definitions[name]["description"]
    _add_rules(definitions)
    parts.add_methods(definitions)
    definitions["Parameter"] = {"oneOf": [ref(name) for name in PARAMETERS]}
    for name, setting in TABLE.items():
        parts.add_setting(definitions, name, setting)

    any_parameter = [
        parts.of_any_parameter({"pattern": OWN_CODE}, describe("module:function")),
        parts.of_any_parameter({"const": COMMAND.kind}, COMMAND),
        parts.of_any_parameter({"const": ASK.kind}, ASK),
    ]
    kinds = [parts.one_kind(definitions, task) for task in BUILT_IN.values()]
    return {
        "$schema": DIALECT,
        "title": TITLE,
        "type": "object",
        "properties": _sections(whole["properties"], [*BUILT_IN, COMMAND.kind, ASK.kind]),
        "required": list(_REQUIRED),
        "additionalProperties": False,
        "allOf": [*kinds, *any_parameter, _space_is_named()],
        "$defs": dict(sorted(definitions.items())),
    }


def _sections(of_the_model: Schema, kinds: list[str]) -> Schema:
    """The top-level keys. An optional one may be empty, which YAML reads as null."""
    sections = {key: part for key, part in of_the_model.items() if key not in ("base", "text")}
    several = {"type": "array", "items": ref("Objective"), "minItems": 1}
    sections["objective"] = {
        "description": "What makes one trial better than another: one objective, or a list.",
        "anyOf": [ref("Objective"), several],
    }
    del sections["objectives"]
    sections["space"]["type"] = "object"
    sections["space"]["additionalProperties"] = ref("Parameter")
    sections["enqueue"]["items"] = {"type": "object", "additionalProperties": SCALAR_SCHEMA}
    named = [{"enum": list(TRACKERS)}, ref("NamedTracker")]
    for key, options in (
        ("checkpoints", [{"type": "string"}, ref("CheckpointsPlace")]),
        ("track", [*named, {"type": "array", "items": {"anyOf": named}}]),
    ):
        sections[key] = {"description": sections[key]["description"], "anyOf": options}
    for section in ("search", "resources"):
        sections[section].pop("default")
    for key in sections.keys() - set(_REQUIRED):
        sections[key] = or_empty(sections[key])
    sections["task"] = {
        "description": "What is trained, on what data; `kind` decides which other keys there are.",
        "type": "object",
        "properties": {"kind": _kind(kinds)},
        "required": ["kind"],
    }
    names = ["objective" if name == "objectives" else name for name in StudySpec.model_fields]
    return {key: sections[key] for key in sorted(sections, key=names.index)}


def _space_is_named() -> Schema:
    """The space names a parameter, unless trials may ask for others (`space.is_open`)."""
    library = {"required": ["library"], "properties": {"library": {"const": OPTUNA}}}
    is_open = {"properties": {"task": library}}
    named = {"required": ["space"], "properties": {"space": {"minProperties": 1, "not": NULL}}}
    return {"if": is_open, "else": named}


def _kind(built_in: list[str]) -> Schema:
    own = {"type": "string", "pattern": OWN_CODE, "examples": ["my_training:train"]}
    return {
        "description": "A kind of task, or package.module:function for your own training code.",
        "anyOf": [{"enum": built_in}, own],
    }


def _given(key: str) -> Schema:
    return {"required": [key], "properties": {key: {"not": NULL}}}


def _add_rules(definitions: Schema) -> None:
    """Add what the models check between their fields, as far as a schema can express it."""
    # A study file writes these defaults in another way than the models keep them.
    for key, default in (("sampler", CURVE_GP), ("pruner", PROMOTION)):
        definitions["Search"]["properties"][key]["default"] = default
    for name in PARAMETERS:
        believed = {"if": _given("confidence"), "then": {"required": ["prior"]}}
        definitions[name]["allOf"] = [believed]
        definitions[name]["properties"]["confidence"]["default"] = "medium"
    # Null is a choice like any other, and no prior is a prior that is not written.
    del definitions["CategoricalParameter"]["properties"]["prior"]["default"]
    for name, plain_step in (("FloatParameter", NULL), ("IntParameter", {"const": 1})):
        definitions[name]["properties"]["step"] |= {"exclusiveMinimum": 0}
        logarithmic = {"required": ["log"], "properties": {"log": {"const": True}}}
        fitting = {"properties": {"low": {"exclusiveMinimum": 0}, "step": plain_step}}
        definitions[name] |= {"if": logarithmic, "then": fitting}
    definitions["NamedTracker"] |= {"minProperties": 1, "maxProperties": 1}
    definitions["Limit"]["anyOf"] = [_given("min"), _given("max")]
    definitions["PerTrial"]["oneOf"] = [_given(unit.value) for unit in Unit]
    limits = ("trials", "gpu_hours", "cost", "wall_clock")
    definitions["StudyBudget"] |= {
        "anyOf": [_given(limit) for limit in limits],
        "if": _given("cost"),
        "then": _given("cost_per_gpu_hour"),
    }
