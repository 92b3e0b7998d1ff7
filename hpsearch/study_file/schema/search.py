"""What `search` can name, as JSON Schema: samplers, pruners and their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpsearch.study_file import methods
from hpsearch.study_file.levels import PROMOTION
from hpsearch.study_file.methods import CURVE_GP, PRUNERS, SAMPLERS, Argument
from hpsearch.study_file.schema.terms import NULL, Schema, ref

_KINDS = {"int": "integer", "float": "number", "str": "string", "bool": "boolean", "None": "null"}
"""Types of arguments, as `methods` names them."""


def add_methods(definitions: Schema) -> None:
    """Define what `search` can name: a word, or a mapping of `kind` and its arguments."""
    import optuna.pruners
    import optuna.samplers

    curve_gp = _method([CURVE_GP], {}, "A model of whole learning curves; it has no arguments.")
    samplers = [curve_gp, *_of_optuna(optuna.samplers, SAMPLERS)]
    pruners = _of_optuna(optuna.pruners, PRUNERS)
    definitions["Sampler"] = {"anyOf": samplers}
    definitions["OptunaPruner"] = {"anyOf": pruners}
    definitions["Pruner"] = {"anyOf": [*_promotion(), ref("OptunaPruner")]}
    for key, name in (("sampler", "Sampler"), ("pruner", "Pruner")):
        section = definitions["Search"]["properties"]
        about = {part: section[key][part] for part in ("description", "default")}
        section[key] = {**about, "allOf": [ref(name)]}


def _of_optuna(module: Any, short_names: Mapping[str, str]) -> list[Schema]:
    """Each class of one of Optuna's modules that has a short name, by all its names."""
    found = []
    for name in dict.fromkeys(short_names.values()):
        names = [name, *(short for short, long in short_names.items() if long == name)]
        arguments = methods.arguments_of(getattr(module, name))
        found.append(_method(names, arguments, f"Optuna's {name}."))
    return found


def _method(names: list[str], arguments: Mapping[str, Argument], about: str) -> Schema:
    """A method by any of its names, without arguments if none is required."""
    required = [name for name, argument in arguments.items() if argument.required]
    written = {
        "type": "object",
        "properties": {
            "kind": {"enum": names},
            **{name: _argument(argument) for name, argument in arguments.items()},
        },
        "required": ["kind", *required],
        "additionalProperties": False,
    }
    if required:
        return {"description": about, **written}
    return {"description": about, "anyOf": [{"enum": names}, written]}


def _argument(argument: Argument) -> Schema:
    if "BasePruner" in argument.kinds:
        return {"anyOf": [ref("OptunaPruner"), NULL]}
    schema: Schema = {"type": [_KINDS[kind] for kind in argument.kinds]}
    if argument.range is not None:
        schema["minimum"], schema["maximum"] = argument.range
    default = argument.default
    can_be_written = isinstance(default, bool | int | float | str)
    if can_be_written and not argument.required:
        schema["default"] = default
    return schema


def _promotion() -> list[Schema]:
    """Our own pruner: by its name, or with arguments."""
    ranges = {
        name: {"type": "integer", "minimum": least, "maximum": most}
        for name, (least, most) in methods.PROMOTION_RANGES.items()
    }
    first_rung = {"type": "number", "exclusiveMinimum": 0}
    about = "Pauses trials at rungs; the best of each rung continue from their checkpoints."
    with_arguments = {
        "description": about,
        "type": "object",
        "properties": {"kind": {"const": PROMOTION}, **ranges, "first_rung": first_rung},
        "required": ["kind"],
        "additionalProperties": False,
        "not": {"required": ["rungs", "first_rung"]},
    }
    return [{"description": about, "const": PROMOTION}, with_arguments]
