"""Numbers, durations, moments and errors as people read them, and plain values as JSON has them."""

import enum
import math
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from trials.settings import as_scalar

NOTHING = "–"  # stands where there is no value
LARGE = 1e15  # from here on, numbers are written with an exponent
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
"""Units of a duration in seconds, largest first."""


def number(value: float | None) -> str:
    """A number with four significant digits; whole numbers in full."""
    if value is None:
        return NOTHING
    if isinstance(value, int):
        return str(int(value))
    if abs(value) < LARGE and value == int(value):
        return str(int(value))
    if 1e3 <= abs(value) < LARGE:
        return f"{value:.0f}"
    return f"{value:.4g}"


def cell(value: Any) -> str:
    """Any value of a parameter, as a study file would write it."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    return str(as_scalar(value))


def pairs(values: Mapping[str, Any]) -> str:
    """Parameters or metrics in a line: ``learning_rate=0.0003 layers=2``."""
    return " ".join(f"{name}={cell(value)}" for name, value in values.items())


def duration(seconds: float | None) -> str:
    """A duration in its two largest units: 3 d 4 h, 2 h 5 min, 3 min 20 s, 4.2 s."""
    if seconds is None:
        return NOTHING
    if 0 < seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    for (large, unit), (small, subunit) in pairwise(_UNITS):
        if whole >= large:
            rest = whole % large // small
            more = f" {rest} {subunit}" if rest else ""
            return f"{whole // large} {unit}{more}"
    return f"{whole} s"


def moment(seconds: float | None) -> str:
    """A point in time on the reader's own clock, to the minute."""
    if seconds is None:
        return NOTHING
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def count(amount: int, thing: str) -> str:
    """``1 trial``, ``2 trials``."""
    return f"{amount} {thing}" + ("" if amount == 1 else "s")


def in_unit(value: float, unit: str) -> str:
    """An amount of training: ``1 epoch``, ``0.5 epochs``, ``3 epochs``."""
    written = number(value)
    return f"{written} {unit.removesuffix('s') if written == '1' else unit}"


def size(amount: int) -> str:
    """Bytes in the unit that suits them: 900 B, 1.2 GB."""
    value, units = float(amount), ["B", "kB", "MB", "GB", "TB", "PB"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.3g} {units[0]}"


def first_line(text: str | None, longest: int = 200) -> str:
    """The most useful line of an error: the last of a traceback, the first of anything else."""
    stripped = [line.strip() for line in (text or "").splitlines()]
    lines = [line for line in stripped if line]
    if not lines:
        return NOTHING
    is_traceback = lines[0].startswith("Traceback")
    line = lines[-1] if is_traceback else lines[0]
    if len(line) <= longest:
        return line
    return line[: longest - 1] + "…"


def finite(value: Any) -> Any:
    """The value as plain data, with null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value
