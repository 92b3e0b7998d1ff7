"""The types of value in a study file, such as durations and names, how errors show them, and the
base of its models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeGuard

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import custom_error_schema

Scalar: TypeAlias = bool | int | float | str | None
"""The values that a parameter can have."""

Mistake: TypeAlias = tuple[str, str]
"""A key, relative to the model (empty for the model as a whole), and what is wrong with it."""

EXACT = 2**53
"""The largest whole number that Optuna can store exactly: it keeps parameters as floats."""

WIDEST = 1e100
"""The largest bound of a parameter, on both sides of 0: the difference must be a float, too."""

_UNIT_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_AMOUNT = r"\d[\d ]*(?:\. *\d[\d ]*)?"
_AMOUNTS = "".join(f"(?:({_AMOUNT}){unit} *)?" for unit in _UNIT_SECONDS)
"""The pattern of a duration such as 1h30m, with spaces anywhere."""

AUTO = "auto"
MOST_EARLIER = 16
"""So many earlier studies a study may start from."""
STUDY_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
"""A pattern of the whole name."""


class Model(BaseModel):
    """Base of all parts of a study file: frozen and strict.

    Unknown keys, values that would have to be converted, nan and infinity are refused. The text
    under a field also describes it in the JSON Schema of the study file.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @model_validator(mode="after")
    def _refuse_mistakes(self) -> Any:
        if found := list(self.mistakes()):
            text = "; ".join(f"{key}: {what}" for key, what in found)
            raise PydanticCustomError("mistakes", "{text}", {"text": text, "mistakes": found})
        return self

    def mistakes(self) -> Iterator[Mistake]:
        """Mistakes between fields whose types are right."""
        yield from ()


def shown(value: Any) -> str:
    """A value for an error text: as a study file writes it, shortened where it is long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python prints
        text = "a number of thousands of digits"
    if len(text) <= 60:
        return text
    return text[:57] + "..."


def same(a: Scalar, b: Scalar) -> bool:
    """True if two values are the same. True and 1 are not, although they are equal in Python."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def is_one_of(value: Scalar, values: Iterable[Scalar]) -> bool:
    """True if a value is the same as one of some others."""
    return any(same(value, each) for each in values)


def is_number(value: Any) -> TypeGuard[int | float]:
    """True for a number: true and false are not, although they are int in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole_number(value: Any) -> TypeGuard[int]:
    """True for a whole number, written without a point: true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def refusal(text: str) -> PydanticCustomError:
    """An error of a validator in its own words."""
    return PydanticCustomError("own", "{text}", {"text": text})


def _wrong(text: str, value: Any) -> PydanticCustomError:
    return refusal(f"{text}, not {shown(value)}")


@dataclass(frozen=True)
class Worded:
    """Refuses what a type does not accept in one text: pydantic tells of each alternative alone."""

    text: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The type's own schema, with another text."""
        return custom_error_schema(handler(source), "worded", custom_error_message=self.text)


def seconds_of(value: Any) -> float:
    """A duration in seconds, from text such as 2h, 90m, 1h30m, 45s or 1d, or from a number of
    seconds. Raises PydanticCustomError if it is not a duration, or not above zero."""
    seconds = _seconds_in(value) if isinstance(value, str) else value
    if not is_number(seconds):
        text = "must be a duration such as 2h, 90m, 1h30m or 45s, or a number of seconds"
        raise _wrong(text, value)
    if not 0 < seconds < EXACT:
        raise _wrong("must be a time above zero", value)
    return float(seconds)


def _seconds_in(text: str) -> float | None:
    """The seconds of a duration such as 1h30m; None if the text is not a duration."""
    match = re.fullmatch(f" *{_AMOUNTS}", text)
    if match is None or not any(match.groups()):
        return None
    counts = [float((count or "0").replace(" ", "")) for count in match.groups()]
    in_units = zip(counts, _UNIT_SECONDS.values(), strict=True)
    return sum(count * seconds for count, seconds in in_units)


def _value_lists(value: Any) -> Any:
    """`when: {lora: true}` as `{lora: (true,)}`."""
    if not isinstance(value, dict):
        return value
    lists: dict[Any, tuple[Any, ...]] = {}
    for parent, values in value.items():
        lists[parent] = tuple(values) if isinstance(values, list | tuple) else (values,)
    return lists


def _whole_or_share(gpus: float | str) -> float | str:
    if isinstance(gpus, float) and gpus > 1 and not gpus.is_integer():
        raise _wrong("must be a share of at most 1 or a whole number of GPUs", gpus)
    return gpus


def _study_name(value: str) -> str:
    if re.fullmatch(STUDY_NAME, value):
        return value
    marks = "letters, digits, '.', '_' and '-'"
    raise _wrong(f"must be 1 to 100 {marks}, starting with a letter, digit or '_'", value)


def _different_studies(earlier: tuple[str, ...] | str) -> tuple[str, ...] | str:
    if isinstance(earlier, str):
        return earlier
    if not 1 <= len(earlier) <= MOST_EARLIER:
        raise _wrong(f"must name 1 to {MOST_EARLIER} studies", list(earlier))
    names = {_study_name(name) for name in earlier}
    if len(names) < len(earlier):
        raise _wrong("must name each study once", list(earlier))
    return earlier


# What our own validators accept, as JSON Schema: pydantic cannot derive it.

SCALAR_SCHEMA: dict[str, Any] = {"type": ["boolean", "number", "string", "null"]}
_LIST_SCHEMA = {"type": "array", "items": SCALAR_SCHEMA, "minItems": 1}
_CHOICES_SCHEMA = {**_LIST_SCHEMA, "uniqueItems": True}
_CONDITION_SCHEMA = {
    "type": "object",
    "additionalProperties": {"anyOf": [SCALAR_SCHEMA, _LIST_SCHEMA]},
}
_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": EXACT},
        {
            "type": "string",
            "pattern": f"^ *(?=.*[^0 .dhms]){_AMOUNTS}$",
            "examples": ["2h", "90m", "1h30m", "45s"],
        },
    ]
}
_AUTO_SCHEMA = {"const": "auto"}
_GPUS_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "integer", "minimum": 1, "exclusiveMaximum": EXACT},
        _AUTO_SCHEMA,
    ]
}
_STUDY_NAME_SCHEMA = {"type": "string", "pattern": f"^{STUDY_NAME}$"}
_EARLIER_SCHEMA = {
    "anyOf": [
        {
            "type": "array",
            "items": _STUDY_NAME_SCHEMA,
            "minItems": 1,
            "maxItems": MOST_EARLIER,
            "uniqueItems": True,
        },
        _AUTO_SCHEMA,
    ]
}

Value = Annotated[
    Scalar,
    Worded("must be a finite number, text, true, false or null"),
    WithJsonSchema(SCALAR_SCHEMA),
]
Choices = Annotated[tuple[Value, ...], Field(strict=False), WithJsonSchema(_CHOICES_SCHEMA)]
Condition = Annotated[
    dict[str, tuple[Value, ...]], BeforeValidator(_value_lists), WithJsonSchema(_CONDITION_SCHEMA)
]
Positive = Annotated[float, Field(gt=0, le=WIDEST)]
Count = Annotated[int, Field(gt=0, le=EXACT)]
Bound = Annotated[float, Field(ge=-WIDEST, le=WIDEST)]
WholeBound = Annotated[int, Field(ge=-EXACT, le=EXACT)]
Duration = Annotated[float, PlainValidator(seconds_of), WithJsonSchema(_DURATION_SCHEMA)]
Workers = Annotated[
    Annotated[int, Field(ge=1, le=EXACT)] | Literal["auto"],
    Worded("must be a whole number of at least 1, or auto"),
]
Gpus = Annotated[
    Annotated[float, Field(ge=0, lt=EXACT)] | Literal["auto"],
    Worded("must be a number of at least 0, or auto"),
    AfterValidator(_whole_or_share),
    WithJsonSchema(_GPUS_SCHEMA),
]
Earlier = Annotated[
    Annotated[tuple[str, ...], Field(strict=False)] | Literal["auto"],
    Worded("must be a list of names of studies, or auto"),
    AfterValidator(_different_studies),
    WithJsonSchema(_EARLIER_SCHEMA),
]
StudyName = Annotated[str, AfterValidator(_study_name), WithJsonSchema(_STUDY_NAME_SCHEMA)]
