"""The types of value in a study file, such as durations and names."""

import math
import re
from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Literal, TypeAlias, TypeGuard

from pydantic import AfterValidator, Field, PlainValidator

from hpsearch.study_file.validation import refusal, shown, worded

Scalar: TypeAlias = bool | int | float | str | None
"""The values that a parameter can have, without lists and mappings."""

Text: TypeAlias = Annotated[str, Field(min_length=1)]  # text that is not empty

EXACT = 2**53
"""The largest whole number that Optuna can store exactly: it keeps parameters as floats."""
WIDEST = 1e100
"""The largest bound of a parameter, on both sides of 0: the difference must be a float, too."""
AUTO = "auto"
SHARE = "share"
MOST_EARLIER = 16  # the most earlier studies that a study may start from
STUDY_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"  # a pattern of the whole name

_UNIT_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_AMOUNT = r"(\d+(?:\.\d+)?) *([dhms])"
_DURATION = r"^ *(?:\d+(?:\.\d+)? *[dhms] *)+$"


def key_of(value: Any) -> Hashable:
    """A key that two values share if they are the same: true and 1 are not, although they are equal
    in Python. The keys of a mapping have no order."""
    if isinstance(value, list | tuple):
        return list, tuple(map(key_of, value))
    if isinstance(value, dict):
        return dict, frozenset((name, key_of(each)) for name, each in value.items())
    return isinstance(value, bool), value if isinstance(value, Hashable) else repr(value)


def same(a: Any, b: Any) -> bool:
    return key_of(a) == key_of(b)


def is_one_of(value: Any, values: Iterable[Any]) -> bool:
    key = key_of(value)
    return any(key == key_of(each) for each in values)


def is_number(value: Any) -> TypeGuard[int | float]:
    """True for a number: true and false are not, although they are int in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole_number(value: Any) -> TypeGuard[int]:
    """True for a whole number, written without a point: true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def seconds_of(value: Any) -> float:
    """A duration in seconds, from text such as 2h, 90m, 1h30m, 45s or 1d, or from a number of
    seconds. Raises PydanticCustomError if it is not a duration, or not above zero."""
    seconds = value
    if isinstance(value, str) and re.fullmatch(_DURATION, value):
        amounts = re.findall(_AMOUNT, value)
        seconds = sum(float(count) * _UNIT_SECONDS[unit] for count, unit in amounts)
    if not is_number(seconds):
        text = "must be a duration such as 2h, 90m, 1h30m or 45s, or a number of seconds"
        raise refusal(f"{text}, not {shown(value)}")
    if not 0 < seconds < EXACT:
        raise refusal(f"must be a time above zero, not {shown(value)}")
    return float(seconds)


def _whole_or_share(gpus: float | str) -> float | str:
    if isinstance(gpus, float) and gpus > 1 and not gpus.is_integer():
        text = "must be a share of at most 1 or a whole number of GPUs"
        raise refusal(f"{text}, not {shown(gpus)}")
    return gpus


def _study_name(value: str) -> str:
    if re.fullmatch(STUDY_NAME, value):
        return value
    marks = "letters, digits, '.', '_' and '-'"
    text = f"must be 1 to 100 {marks}, starting with a letter, digit or '_'"
    raise refusal(f"{text}, not {shown(value)}")


def _different(earlier: tuple[str, ...] | str) -> tuple[str, ...] | str:
    if not isinstance(earlier, str) and len(set(earlier)) < len(earlier):
        raise refusal(f"must name each study once, not {shown(list(earlier))}")
    return earlier


def _value(value: Any) -> Any:
    """A value of JSON, with tuples as lists."""
    if isinstance(value, list | tuple):
        return list(map(_value, value))
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _value(each) for name, each in value.items()}
    is_finite = isinstance(value, float) and math.isfinite(value)
    if value is None or is_finite or isinstance(value, bool | int | str):
        return value
    wanted = "a finite number, text, true, false, null, or a list or mapping of these"
    raise refusal(f"must be {wanted}, not {shown(value)}")


Written: TypeAlias = Scalar | list[Any] | dict[str, Any]
Value = Annotated[Any, PlainValidator(_value, json_schema_input_type=Written)]
Choices = Annotated[tuple[Value, ...], Field(strict=False, json_schema_extra={"minItems": 1})]
Positive = Annotated[float, Field(gt=0, le=WIDEST)]
Count = Annotated[int, Field(gt=0, le=EXACT)]
Rounds = Annotated[int, Field(ge=2, le=1000)]
Bound = Annotated[float, Field(ge=-WIDEST, le=WIDEST)]
WholeBound = Annotated[int, Field(ge=-EXACT, le=EXACT)]
Duration = Annotated[
    float,
    PlainValidator(
        seconds_of,
        json_schema_input_type=Annotated[float, Field(gt=0)]
        | Annotated[str, Field(pattern=_DURATION)],
    ),
]
Workers = Annotated[
    Annotated[int, Field(ge=1, le=EXACT)] | Literal["auto"],
    worded("must be a whole number of at least 1, or auto"),
]
Gpus = Annotated[
    Annotated[float, Field(ge=0, lt=EXACT)] | Literal["auto", "share"],
    worded("must be a number of at least 0, auto or share"),
    AfterValidator(_whole_or_share),
]
Level = Annotated[
    bool | Annotated[float, Field(ge=0.5, lt=1)],
    worded("must be true, or a level such as 0.95, from 0.5 to below 1"),
]
GpuPrice = Annotated[
    Positive | Annotated[dict[Annotated[str, Field(min_length=1)], Positive], Field(min_length=1)],
    worded("must be a price above 0, or one for each type of GPU, such as {A100: 2.5, T4: 0.35}"),
]
StudyName = Annotated[
    str, Field(json_schema_extra={"pattern": f"^{STUDY_NAME}$"}), AfterValidator(_study_name)
]
Earlier = Annotated[
    Annotated[tuple[StudyName, ...], Field(strict=False, min_length=1, max_length=MOST_EARLIER)]
    | Literal["auto"],
    worded(f"must be a list of 1 to {MOST_EARLIER} names of studies, or auto"),
    AfterValidator(_different),
]
