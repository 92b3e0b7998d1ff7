"""Expressions as fields of a study file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, GetPydanticSchema, PlainValidator, WrapValidator

from hpsearch.study_file.expressions.grammar import ExpressionError
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.types import Value, Written
from hpsearch.study_file.validation import refusal, shown

MOST_LETTERS = 10_000
"""Letters of one expression, which is tested for very many configurations."""
MOST_NAMED = 1_000
"""Values of one parameter in a condition."""


def error_text(error: ExpressionError) -> str:
    """The text of a mistake, with the place in the expression on two more lines."""
    hint = "" if error.hint is None else f"; {error.hint}"
    return f"{error.what}{hint}\n{error.excerpt}"


def _expression(value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    if not isinstance(value, str):
        raise refusal(f"must be text, such as 'heads * 8 <= width', not {shown(value)}")
    if len(value) > MOST_LETTERS:
        raise refusal(f"has {len(value)} letters, and at most {MOST_LETTERS} are read; split it")
    try:
        return Expression(value)
    except ExpressionError as error:
        raise refusal(error_text(error)) from None


def _value_lists(value: Any) -> Any:
    """`when: {lora: true}` as `{lora: (true,)}`."""
    if not isinstance(value, dict):
        return value
    lists: dict[Any, tuple[Any, ...]] = {}
    for parent, values in value.items():
        lists[parent] = tuple(values) if isinstance(values, list | tuple) else (values,)
        if len(lists[parent]) > MOST_NAMED:
            raise refusal(f"lists {len(values)} values of {parent}, and may list {MOST_NAMED}")
    return lists


def _condition(value: Any, handler: Any) -> Any:
    return _expression(value) if isinstance(value, str | Expression) else handler(value)


_Mapping = Annotated[
    dict[str, tuple[Value, ...]],
    BeforeValidator(_value_lists),
    WrapValidator(_condition, json_schema_input_type=str | dict[str, Written | list[Written]]),
]
Condition: TypeAlias = Annotated[
    Mapping[str, tuple[Any, ...]] | Expression,
    GetPydanticSchema(lambda _source, handler: handler.generate_schema(_Mapping)),
]
"""An expression, or the values that each of some parents must have one of."""

Requirements: TypeAlias = Annotated[
    tuple[Annotated[Expression, PlainValidator(_expression, json_schema_input_type=str)], ...],
    Field(strict=False),
]
