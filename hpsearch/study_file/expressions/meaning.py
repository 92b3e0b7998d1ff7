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

from lark import Token, Transformer, v_args
from lark.exceptions import VisitError
from pydantic import BeforeValidator, Field, GetPydanticSchema, PlainValidator, WrapValidator

from hpsearch.study_file.expressions.grammar import ExpressionError, parsed, value_of
from hpsearch.study_file.types import Value, Written, is_number, same
from hpsearch.study_file.validation import refusal, shown
from trials.descriptions.cells import nested_in
from trials.settings import nearest

Values = Sequence[Any] | None
"""The values that a name can have; None for any number."""

Meaning = Callable[[Mapping[str, Any]], Any]
"""The value of a part of an expression, by the values of its names."""

ROUNDING = 1e-9
"""Numbers that differ by less than this share of the larger one count as equal."""

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
    """A condition such as ``heads * 8 <= width``. Making one raises ExpressionError if the text
    cannot be read."""

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
        """The parameters that it names."""
        references = parsed(self.text, "condition").find_data("reference")
        names = dict.fromkeys(_name_of(str(each.children[0])) for each in references)
        return tuple(name for name in names if name not in self.settings)

    def holds(self, params: Mapping[str, Any]) -> bool:
        """True if it holds for these parameters; others are absent."""
        return bool(self._meaning(params))

    def check(self, known: Mapping[str, Values], sought: str) -> None:
        """Raise ExpressionError for a name that is not among the known ones, all of the kind that
        is sought, or for a comparison or calculation that its values never fit."""
        self._transformed(_Check(self.text, known, sought))

    @cached_property
    def _meaning(self) -> Meaning:
        meaning: Meaning = self._transformed(_Meanings(self.text, self.settings))
        return meaning

    def _transformed(self, transformer: Transformer[Token, Any]) -> Any:
        try:
            return transformer.transform(parsed(self.text, "condition"))
        except VisitError as error:
            raise error.orig_exc from None
        except RecursionError:
            raise ExpressionError("is nested too deep", self.text, 0) from None


def _name_of(written: str) -> str:
    return written.strip("`")


# ---------------------------------------------------------------------------------------- meaning


@v_args(inline=True)
class _Meanings(Transformer[Token, Meaning]):
    """Makes functions of the parts of an expression. The methods are named as the rules of the
    grammar."""

    def __init__(self, text: str, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self._text = text
        self._settings = settings

    def condition(self, part: Meaning) -> Meaning:
        return part

    def any(self, *parts: Meaning) -> Meaning:
        return parts[0] if len(parts) == 1 else lambda params: any(of(params) for of in parts)

    def all(self, *parts: Meaning) -> Meaning:
        return parts[0] if len(parts) == 1 else lambda params: all(of(params) for of in parts)

    def opposite(self, _not: Token, of: Meaning) -> Meaning:
        return lambda params: not of(params)

    def compared(self, left: Meaning, sign: Token, right: Meaning) -> Meaning:
        if sign in _ORDERS:
            return lambda params: _is_ordered(sign, left(params), right(params))
        is_equal = sign in ("=", "==")
        return lambda params: _equal(left(params), right(params)) == is_equal

    def absent(self, of: Meaning, negated: Token | None) -> Meaning:
        return lambda params: (of(params) is None) == (negated is None)

    def among(self, of: Meaning, negated: Token | None, *values: Meaning) -> Meaning:
        def found(params: Mapping[str, Any]) -> bool:
            value = of(params)
            return any(_equal(value, each(params)) for each in values) == (negated is None)

        return found

    def calculated(self, left: Meaning, sign: Token, right: Meaning) -> Meaning:
        return lambda params: _calculated(sign, left(params), right(params))

    def signed(self, sign: Token, of: Meaning) -> Meaning:
        return lambda params: _calculated(sign, 0, of(params))

    def reference(self, token: Token) -> Meaning:
        name = _name_of(token)
        if name in self._settings:
            fixed = self._settings[name]
            return lambda params: fixed
        return lambda params: params.get(name)

    def value(self, token: Token) -> Meaning:
        try:
            value = value_of(token)
        except ValueError:
            what = f"'{token}' is not a number"
            raise ExpressionError(what, self._text, token.start_pos or 0) from None
        return lambda params: value


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


def _calculated(sign: str, a: Any, b: Any) -> float | None:
    """A number; None where an operand is not one, and for a division by zero."""
    if not is_number(a) or not is_number(b) or (sign in "/%" and b == 0):
        return None
    found: float = _CALCULATIONS[sign](float(a), float(b))
    return found


# --------------------------------------------------------------------------------------- mistakes


class _Operand(NamedTuple):
    start: Token
    values: Values

    @property
    def kinds(self) -> set[str]:
        if self.values is None:
            return {_KINDS[float]}
        return {_KINDS[type(value)] for value in self.values if type(value) in _KINDS}


@v_args(inline=True)
class _Check(Transformer[Token, Any]):
    """Finds what makes no sense in an expression that can be read."""

    def __init__(self, text: str, known: Mapping[str, Values], sought: str) -> None:
        super().__init__()
        self._text = text
        self._sought = sought
        self._known = known

    def reference(self, token: Token) -> _Operand:
        name = _name_of(token)
        if name in self._known:
            return _Operand(token, self._known[name])
        hint = nearest(name, self._known)
        if set(name) & set("-/"):
            hint = "put blanks around - and / to calculate"
        elif not hint.startswith("did you mean"):
            hint += f"; put text in quotes: '{name}'"
        raise self._wrong(token, f"no {self._sought} is named '{name}'", hint)

    def value(self, token: Token) -> _Operand:
        return _Operand(token, (value_of(token),))

    def calculated(self, left: _Operand, sign: Token, right: _Operand) -> _Operand:
        self.signed(sign, left)
        self.signed(sign, right)
        return _Operand(left.start, None)

    def signed(self, sign: Token, of: _Operand) -> _Operand:
        if _KINDS[float] not in of.kinds:
            what = f"'{of.start}' is {_listed(of.kinds)}, and {sign} takes numbers"
            raise self._wrong(of.start, what)
        return _Operand(sign, None)

    def compared(self, left: _Operand, sign: Token, right: _Operand) -> None:
        common = left.kinds & right.kinds
        if not common:
            kinds = f"'{left.start}' is {_listed(left.kinds)}, never {_listed(right.kinds)}"
            raise self._wrong(right.start, kinds)
        if sign not in _ORDERS:
            self._check_values(left, right)
        elif common == {_KINDS[bool]}:
            raise self._wrong(right.start, "true and false have no order", "write: == or !=")

    def among(self, of: _Operand, negated: Token | None, *values: _Operand) -> None:
        for each in values:
            self.compared(of, Token("SIGN", "=="), each)

    def _check_values(self, left: _Operand, right: _Operand) -> None:
        if left.values is None or right.values is None:
            return
        if not any(_equal(a, b) for a in left.values for b in right.values):
            what = f"'{left.start}' is never {right.start}"
            raise self._wrong(right.start, what, nearest(right.start.strip("'\""), left.values))

    def _wrong(self, token: Token, what: str, hint: str | None = None) -> ExpressionError:
        return ExpressionError(what, self._text, token.start_pos or 0, hint)


def _listed(kinds: set[str]) -> str:
    return " or ".join(sorted(kinds)) or "nothing"


# -------------------------------------------------------------------- fields of a study file

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
