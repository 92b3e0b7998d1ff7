"""The building blocks that all parts of the JSON Schema share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

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


def either(options: Iterable[Schema]) -> Schema:
    """One of several schemas, or the only one."""
    several = list(options)
    return several[0] if len(several) == 1 else {"anyOf": several}


def or_empty(schema: Schema) -> Schema:
    """The same schema, or null; its description and default stay outside."""
    about: Schema = {key: schema.pop(key) for key in ("description", "default") if key in schema}
    options = schema.pop("anyOf", None) or [schema]
    return {**about, "anyOf": [*options, NULL]}


def mapping(properties: Schema, required: Iterable[str] = ()) -> Schema:
    """A mapping with these keys and no others."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema
