"""The samplers and pruners of `search` with their arguments, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpsearch.study_file.levels import PROMOTION
from hpsearch.study_file.methods import (
    CURVE_GP,
    PRUNERS,
    SAMPLERS,
    PromotionArguments,
    arguments_of,
)
from hpsearch.study_file.schema.terms import NULL, Schema, WithoutTitles, ref
from hpsearch.study_file.types import Model


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
