"""Cells of tables and texts of programs: the values that they are, decided in one way for training
data, past runs, recorded curves, reports and parameters on a command line.
"""

import json
import math
import re
import sys
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(
    r"[+-]?(?:(?P<whole>[0-9]+)|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|inf(?:inity)?)",
    re.IGNORECASE,
)
_MOST_DIGITS = 309
"""A whole number of more digits is larger than any float."""


def number_in(text: str) -> int | float | None:
    """The number that a text is; None for any other text.

    A number is written in the digits 0 to 9, perhaps with a sign, a decimal point and an exponent,
    or is `nan`, `inf` or `infinity` in any case of letters; there may be blanks around it. Texts
    are therefore `1_000`, `64_64`, `1,5`, `0x10`, `１`, `True` and an empty one. It is whole if it
    has neither a point nor an exponent. A number that no float is as large as is infinite.
    """
    plain = text.strip()
    found = _NUMBER.fullmatch(plain)
    if found is None:
        return None
    number = float(plain)
    if found["whole"] is None or math.isinf(number) or len(plain) > _MOST_DIGITS:
        return number
    return int(plain)


def number_of(cell: Any) -> int | float | None:
    """The number that a cell of any type is, by its text if it is text; None for anything else,
    such as true, a time or a list, and for an empty cell."""
    value = plain(cell)
    if isinstance(value, str):
        return number_in(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if abs(value) > sys.float_info.max:
        return math.inf if value > 0 else -math.inf
    return value


def plain(cell: Any) -> Any:
    """A cell as Python's own value, None if it is empty: of Parquet and pandas there are scalars
    and arrays of numpy, decimals and several missing values."""
    if cell is None or isinstance(cell, str):
        return None if cell is None or not cell.strip() else cell
    if isinstance(cell, int | float):
        return None if cell != cell else cell
    import numpy as np  # here: a program's reports need neither
    import pandas as pd

    if isinstance(cell, np.ndarray):
        return [_inner(each) for each in cell.tolist()]
    if isinstance(cell, list | tuple | dict):
        return _inner(cell)
    if pd.isna(cell):
        return None
    if type(cell).__name__ == "Decimal":
        return int(cell) if cell == cell.to_integral_value() else float(cell)
    if isinstance(cell, np.generic) and not isinstance(cell, np.datetime64 | np.timedelta64):
        return plain(cell.item())
    return cell


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _inner(each) for name, each in value.items()}
    if isinstance(value, list | tuple) or hasattr(value, "tolist"):
        parts = value if isinstance(value, list | tuple) else value.tolist()
        return [_inner(each) for each in parts] if isinstance(parts, list | tuple) else parts
    return value


def nested_in(text: Any) -> Any:
    """The list or mapping that a text is in JSON; None for anything else."""
    if not isinstance(text, str) or text.strip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def column_of(cells: Iterable[Any]) -> list[Any]:
    """The values of a column, None for empty cells: finite numbers, whole if all are; true and
    false; or lists and mappings, if all are; else texts."""
    values = [plain(cell) for cell in cells]
    for kind in (_whole, _fraction, truth_in, _nested):
        found = [None if value is None else kind(value) for value in values]
        if all((a is None) == (b is None) for a, b in zip(found, values, strict=True)):
            return found
    return [None if value is None else _text(value) for value in values]


def _whole(value: Any) -> int | None:
    number = number_of(value)
    return number if isinstance(number, int) else None


def _fraction(value: Any) -> float | None:
    number = number_of(value)
    return float(number) if number is not None and math.isfinite(number) else None


def truth_in(value: Any) -> bool | None:
    """The truth value that a cell is, in any case of letters; None for anything else."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else None
    return word == "true" if word in ("true", "false") else None


def _nested(value: Any) -> Any:
    return value if isinstance(value, list | dict) else nested_in(value)


def _text(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value).strip()
