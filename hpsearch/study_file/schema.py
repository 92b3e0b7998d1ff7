"""The study file as one JSON Schema, for editors: its keys, their meanings and their limits.

It is what pydantic makes of the models of the study file. It accepts all that `reading` accepts,
and refuses unknown keys, wrong types and values out of range. Only `reading` knows the keys,
settings and metrics of tasks and the arguments of methods, and what takes two keys to see.
"""

import ast
import inspect
import itertools
from sys import modules
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.validation import Model
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.descriptions.description import ASK

Schema = dict[str, Any]

TITLE = "A study file of hpsearch"  # marks a file as a schema that this program wrote

_REQUIRED = ["study", "task", "objective", "budget"]


class _Described(GenerateJsonSchema):
    """Pydantic's schemas with the texts under fields. Pydantic itself reads them only while models
    are imported, which then takes a tenth of a second longer."""

    def model_schema(self, schema: Any) -> Schema:
        made = super().model_schema(schema)
        model = schema["cls"]
        for part in model.__mro__:
            if not issubclass(part, Model) or part.__name__ not in vars(modules[part.__module__]):
                continue  # it has no source, as it was made of what plugins offer
            (definition,) = ast.parse(inspect.getsource(part)).body
            assert isinstance(definition, ast.ClassDef)
            for field, text in itertools.pairwise(definition.body):
                match field, text:
                    case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(words))):
                        known = model.model_fields.get(name)
                        described = made["properties"].get((known and known.alias) or name, {})
                        described.setdefault("description", inspect.cleandoc(words))
        return made


def study_file_schema() -> Schema:
    schema = StudySpec.model_json_schema(schema_generator=_Described)
    sections = schema["properties"]
    several = {**sections.pop("objectives"), "minItems": 1}
    about = several.pop("description")
    sections["objective"] = {"description": about, "anyOf": [several["items"], several]}
    kinds = [{"enum": [*BUILT_IN, COMMAND.kind, ASK.kind]}, {"type": "string", "pattern": ":"}]
    sections["task"] |= {"properties": {"kind": {"anyOf": kinds}}, "required": ["kind"]}
    search = schema["$defs"]["Search"]["properties"]
    for described in (sections["search"], search["sampler"], search["pruner"]):
        del described["default"]  # it is not as a file writes it
    for key in sections.keys() - set(_REQUIRED):  # empty, which YAML reads as null
        about = sections[key].pop("description")
        sections[key] = {"description": about, "anyOf": [sections[key], {"type": "null"}]}
    dialect = GenerateJsonSchema.schema_dialect
    return {**schema, "$schema": dialect, "title": TITLE, "required": _REQUIRED}
