"""The kinds of value a study file is made of: durations, shares of GPUs, names, conditions, and how they are shown."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator
from pydantic_core import PydanticCustomError

Scalar: TypeAlias = bool | int | float | str | None
"""What a parameter's value can be: what JSON and YAML write on one line."""

EXACT = 2**53
"""The largest whole number that Optuna, which keeps parameters as floats, can tell from its neighbours."""

WIDEST = 1e100
"""The bounds of a parameter lie within this on both sides of 0: their difference must be a float, too."""

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_UNIT_SECONDS = (86400.0, 3600.0, 60.0, 1.0)


def shown(value: Any) -> str:
    """A value for an error text: as the study file writes it, cut where it is long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python prints
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def same(a: Scalar, b: Scalar) -> bool:
    """Whether two values are one and the same: Python has True == 1, the study file does not."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def seconds_of(value: Any) -> float:
    """A duration in seconds, from text such as 2h, 90m, 1h30m, 45s or 1d, or from a number of seconds.

    Raises:
        PydanticCustomError: It is no duration, or not above zero.
    """
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.replace(" ", ""))) and any(match.groups()):
        pairs = zip(match.groups(), _UNIT_SECONDS, strict=True)
        value = sum(float(count) * unit for count, unit in pairs if count is not None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = "must be a duration such as 2h, 90m, 1h30m or 45s, or a number of seconds, not {shown}"
        raise PydanticCustomError("own", text, {"shown": shown(value)})
    if not 0 < value < EXACT:
        raise PydanticCustomError("own", "must be a time above zero, not {shown}", {"shown": shown(value)})
    return float(value)


def _scalar(value: Any) -> Scalar:
    if not isinstance(value, bool | int | float | str | None) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        text = "must be a finite number, text, true, false or null, not {shown}"
        raise PydanticCustomError("own", text, {"shown": shown(value)})
    return value


def _value_lists(value: Any) -> Any:
    """`when: {lora: true}` as `{lora: (true,)}`."""
    if not isinstance(value, dict):
        return value
    return {k: tuple(v) if isinstance(v, list | tuple) else (v,) for k, v in value.items()}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _workers(value: Any) -> int | str:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= EXACT):
        return value  # type: ignore[no-any-return]
    text = "must be a whole number of at least 1, or auto, not {shown}"
    raise PydanticCustomError("own", text, {"shown": shown(value)})


def _gpus(value: Any) -> float | str:
    if value == "auto":
        return "auto"
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < EXACT:
        raise PydanticCustomError("own", "must be a number from 0, or auto, not {shown}", {"shown": shown(value)})
    if value > 1 and value != int(value):
        text = "must be a share up to 1 or a whole number of GPUs, not {shown}"
        raise PydanticCustomError("own", text, {"shown": shown(value)})
    return float(value)


def _study_name(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", value):
        return value
    text = "must be 1 to 100 letters, digits, '.', '_' and '-', not starting with '.' or '-', not {shown}"
    raise PydanticCustomError("own", text, {"shown": shown(value)})


Value = Annotated[Scalar, PlainValidator(_scalar)]
Choices = Annotated[tuple[Value, ...], BeforeValidator(_tuple)]
Condition = Annotated[dict[str, tuple[Value, ...]], BeforeValidator(_value_lists)]
Positive = Annotated[float, Field(gt=0, le=WIDEST)]
Count = Annotated[int, Field(gt=0, le=EXACT)]
Bound = Annotated[float, Field(ge=-WIDEST, le=WIDEST)]
WholeBound = Annotated[int, Field(ge=-EXACT, le=EXACT)]
Duration = Annotated[float, PlainValidator(seconds_of)]
Workers = Annotated[int | Literal["auto"], PlainValidator(_workers)]
Gpus = Annotated[float | Literal["auto"], PlainValidator(_gpus)]
StudyName = Annotated[str, AfterValidator(_study_name)]
