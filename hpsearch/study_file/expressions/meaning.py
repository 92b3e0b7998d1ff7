"""Expressions of a study file: the names in them, their mistakes, their truth for a configuration,
and the fields that hold them.

An absent value and null equal nothing and are neither above nor below anything, and so is what is
calculated from them. A list or a mapping equals its JSON text, however that is spaced, and has no
order. Numbers count as equal if they differ by less than a billionth of the larger one: on a grid
of 0.1, ``a + b + c == 1`` would otherwise hold for some orders of its terms alone.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import BeforeValidator, Field, GetPydanticSchema, PlainValidator, WrapValidator

from hpsearch.study_file.expressions.parsing import ExpressionError, Term, Visitor, parsed
from hpsearch.study_file.expressions.patterns import Pattern
from hpsearch.study_file.types import Value, Written, is_number, same
from hpsearch.study_file.validation import refusal, shown
from trials.descriptions.cells import nested_in
from trials.settings import nearest

Values = Sequence[Any] | None  # the values that a name can have; None for any number

Meaning = Callable[[Mapping[str, Any]], Any]
"""The value of a part of an expression, by the values of its names."""

ROUNDING = 1e-9  # numbers that differ by less than this share of the larger one count as equal

_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CALCULATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "text",
    dict: "text",  # compared with their JSON texts
}


@dataclass(frozen=True)
class Expression:
    """A condition such as ``heads * 8 <= width``. Raises ExpressionError for any other text."""

    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The values of names that are not parameters."""

    def __post_init__(self) -> None:
        self.holds({})

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression, (self.text, self.settings)

    def given(self, settings: Mapping[str, Any]) -> Expression:
        """The same expression, in which the names of settings stand for their values."""
        return replace(self, settings=settings)

    @cached_property
    def names(self) -> tuple[str, ...]:
        names = dict.fromkeys(leaf.name for leaf in parsed(self.text).leaves)
        return tuple(name for name in names if name is not None and name not in self.settings)

    def holds(self, params: Mapping[str, Any]) -> bool:
        """True if it holds for these parameters; others are absent."""
        return bool(self._meaning(params))

    def check(self, known: Mapping[str, Values], sought: str) -> None:
        """Raise ExpressionError for a name that is not among the known ones, all of the kind that
        is sought, or for a comparison or calculation that its values never fit."""
        _Meanings(self.text, self.settings, known, sought).read(parsed(self.text))

    @cached_property
    def _meaning(self) -> Meaning:
        meaning: Meaning = _Meanings(self.text, self.settings).read(parsed(self.text))
        return meaning


# ---------------------------------------------------------------------------------------- meaning


class _Operand(NamedTuple):
    written: Term
    of: Meaning
    values: Values
    kinds: frozenset[str]


class _Meanings(Visitor):
    """Makes a function of each test, and finds those that make no sense for the known values."""

    def __init__(
        self,
        text: str,
        settings: Mapping[str, Any],
        known: Mapping[str, Values] | None = None,
        sought: str = "",
    ) -> None:
        super().__init__(text)
        self._settings = settings
        self._known = known
        self._sought = sought

    def any(self, _part: Term, *tests: Meaning) -> Meaning:
        return lambda params: any(holds(params) for holds in tests)

    def all(self, _part: Term, *tests: Meaning) -> Meaning:
        return lambda params: all(holds(params) for holds in tests)

    def opposite(self, _part: Term, holds: Meaning) -> Meaning:
        return lambda params: not holds(params)

    def absent(self, _part: Term, operand: _Operand) -> Meaning:
        return lambda params: operand.of(params) is None

    def ordered(self, part: Term, left: _Operand, right: _Operand) -> Meaning:
        if self._common(left, right) == {_KINDS[bool]}:
            raise self.wrong(right.written, "true and false have no order", "write: == or !=")
        return lambda params: _is_ordered(part.written, left.of(params), right.of(params))

    def among(self, _part: Term, left: _Operand, *others: _Operand) -> Meaning:
        for right in others:
            self._common(left, right)
            if left.values is None or right.values is None:
                continue
            if not any(_equal(a, b) for a in left.values for b in right.values):
                written = right.written.written
                hint = nearest(written.strip("'\""), map(str, left.values))
                what = f"'{left.written.written}' is never {written}"
                raise self.wrong(right.written, what, hint)

        def holds(params: Mapping[str, Any]) -> bool:
            value = left.of(params)
            return any(_equal(value, right.of(params)) for right in others)

        return holds

    def like(self, _part: Term, operand: _Operand, pattern: _Operand) -> Meaning:
        self._demand(_KINDS[str], operand, "like takes text")
        fits = Pattern(str(pattern.written.value)).fits

        def holds(params: Mapping[str, Any]) -> bool:
            value = operand.of(params)
            return isinstance(value, str) and fits(value)

        return holds

    def sum(self, part: Term, *operands: _Operand) -> _Operand:
        sign = part.written
        for each in operands:
            self._demand(_KINDS[float], each, f"{sign} takes numbers")
        written = operands[0].written

        def value(params: Mapping[str, Any]) -> float | None:
            return _calculated(sign, *(each.of(params) for each in operands))

        return _Operand(written, value, None, _kinds_of(None))

    def leaf(self, part: Term) -> _Operand:
        name = part.name
        if name is None:
            return _Operand(
                part, lambda _params: part.value, (part.value,), _kinds_of((part.value,))
            )
        fixed = self._settings.get(name)
        is_fixed = name in self._settings

        def value(params: Mapping[str, Any]) -> Any:
            return fixed if is_fixed else params.get(name)

        if self._known is None:
            return _Operand(part, value, None, frozenset(_KINDS.values()))
        if name in self._known:
            values = self._known[name]
            return _Operand(part, value, values, _kinds_of(values))
        hint = nearest(name, self._known)
        if set(name) & set("-/"):
            hint = "put blanks around - and / to calculate"
        elif not hint.startswith("did you mean"):
            hint += f"; put text in quotes: '{name}'"
        raise self.wrong(part, f"no {self._sought} is named '{name}'", hint)

    def _common(self, left: _Operand, right: _Operand) -> frozenset[str]:
        common = left.kinds & right.kinds
        if not common:
            kinds = f"{_listed(left.kinds)}, never {_listed(right.kinds)}"
            raise self.wrong(right.written, f"'{left.written.written}' is {kinds}")
        return common

    def _demand(self, kind: str, operand: _Operand, what: str) -> None:
        if kind not in operand.kinds:
            kinds = f"'{operand.written.written}' is {_listed(operand.kinds)}, and {what}"
            raise self.wrong(operand.written, kinds)


def _kinds_of(values: Values) -> frozenset[str]:
    if values is None:
        return frozenset({_KINDS[float]})
    return frozenset(_KINDS[type(value)] for value in values if type(value) in _KINDS)


def _equal(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return False
    if isinstance(a, list | dict):
        return same(a, nested_in(b) if isinstance(b, str) else b)
    if isinstance(b, list | dict):
        return _equal(b, a)
    return same(a, b) or (is_number(a) and is_number(b) and math.isclose(a, b, rel_tol=ROUNDING))


def equals_of(number: float) -> tuple[float, float]:
    """The smallest and the largest number that count as equal to one."""
    if math.isinf(number):
        return number, number
    largest = sys.float_info.max
    ends = number * (1 - ROUNDING), number / (1 - ROUNDING)
    return max(min(ends), -largest), min(max(ends), largest)


def _is_ordered(sign: str, a: Any, b: Any) -> bool:
    if not (is_number(a) and is_number(b)) and not (isinstance(a, str) and isinstance(b, str)):
        return False
    if _equal(a, b):
        return "=" in sign
    return bool(_ORDERS[sign](a, b))


def _calculated(sign: str, *of: Any) -> float | None:
    """A number; None where an operand is not one, and for a division by zero."""
    a, b = of if len(of) == 2 else (0, *of)
    if not is_number(a) or not is_number(b) or (sign in "/%" and b == 0):
        return None
    found: float = _CALCULATIONS[sign](float(a), float(b))
    return found


def _listed(kinds: frozenset[str]) -> str:
    return " or ".join(sorted(kinds)) or "nothing"


# -------------------------------------------------------------------- fields of a study file

MOST_LETTERS = 10_000  # letters of one expression, which is tested for very many configurations
MOST_NAMED = 1_000  # values of one parameter in a condition


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
