"""Cells of tables and texts of programs: the values that they are, decided in one way for training
data, past runs, recorded curves, reports and parameters on a command line.
"""

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

_NUMBER = re.compile(
    r"[+-]?(?:(?P<whole>[0-9]+)|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|inf(?:inity)?)",
    re.IGNORECASE,
)
_MOST_DIGITS = 309  # a whole number of more digits is larger than any float


def number_in(text: str) -> int | float | None:
    """The number that a text is; None for any other text.

    A number is written in the digits 0 to 9, perhaps with a sign, a decimal point and an exponent,
    or is `nan`, `inf` or `infinity` in any case of letters; there may be blanks around it. Texts
    are therefore `1_000`, `64_64`, `1,5`, `0x10`, `１`, `True` and an empty one. It is whole if it
    has neither a point nor an exponent. A number that no float is as large as is infinite."""
    plain = text.strip()
    found = _NUMBER.fullmatch(plain)
    if found is None:
        return None
    number = float(plain)
    if found["whole"] is None or math.isinf(number) or len(plain) > _MOST_DIGITS:
        return number
    return int(plain)


_BETWEEN = "'’_\u00a0\u2009\u202f"  # marks between thousands, beside a point, a comma and a blank
_EXPONENT = r"(?:[eE][-+]?[0-9]+)?"
AS_PRINTED = re.compile(
    r"(?P<number>[-+]?(?:[1-9][0-9]{0,2}(?: [0-9]{3})+(?![\w%])(?:[.,][0-9]+)?"
    rf"|(?:[0-9]+(?:[.,{_BETWEEN}][0-9]+)*\.?|[.,][0-9]+){_EXPONENT}|nan|inf(?:inity)?))"
    r"(?: ?/ ?(?P<whole>[1-9][0-9]*)(?![\w./])"
    r"|(?P<unit>\s?(?:%|(?:[nuµm]?s|sec|min)(?!\w))|(?:h|[kKMGT]i?B?)(?!\w)))?",
    re.IGNORECASE,
)
"""A number as programs print it: `1,234.5`, `1 234,5`, `0.83s`, `81%`, `3/10`."""


def _with_mark(mark: str, other: str) -> re.Pattern[str]:
    """Numbers with this decimal mark; the other one may be between thousands."""
    thousands = rf"[1-9][0-9]{{0,2}}(?P<by>[{other}{_BETWEEN} ])[0-9]{{3}}(?:(?P=by)[0-9]{{3}})*"
    digits = rf"(?:{thousands}|[0-9]+)(?:[{mark}][0-9]*)?|[{mark}][0-9]+"
    return re.compile(rf"[-+]?(?:{digits}){_EXPONENT}")


_BY_MARK = {".": _with_mark(".", ","), ",": _with_mark(",", ".")}
_NOT_THE_NUMBER = {mark: re.compile(rf"[{other}{_BETWEEN} ]") for mark, other in (".,", ",.")}


def _readings(text: str) -> dict[str, float]:
    """The numbers that a text can be, by decimal mark."""
    if text.strip("+-")[:1].isalpha():  # nan, inf
        return dict.fromkeys(_BY_MARK, float(text))
    found = {}
    for mark, form in _BY_MARK.items():
        if form.fullmatch(text):
            found[mark] = float(_NOT_THE_NUMBER[mark].sub("", text).replace(mark, "."))
    return found


class PrintedNumbers:
    """Reads the numbers that one program prints: its decimal mark and its units must not change. A
    fraction of whole numbers is its value, and units are left out."""

    def __init__(self) -> None:
        self._marks: set[str] = set()
        """The decimal marks of numbers that can be read in one way alone."""
        self._units: dict[str, str] = {}

    def values_of(self, texts: Mapping[str, str], counter: str) -> dict[str, float]:
        """The numbers of one report by their names, without texts that are not numbers. `counter`
        is the name of the number that counts the training. Raises ValueError, which says what to
        do, for a number that can be read in two ways or in none."""
        found = {name: AS_PRINTED.fullmatch(text.strip()) for name, text in texts.items()}
        known = {name: each for name, each in found.items() if each is not None}
        for each in known.values():
            readings = _readings(each["number"])
            self._marks |= readings.keys() if len(readings) == 1 else set()
        return {name: self._value(name, each, counter) for name, each in known.items()}

    def _value(self, name: str, found: re.Match[str], counter: str) -> float:
        value = self._number(name, found["number"], is_counter=name == counter)
        if name == counter:
            return value
        if found["whole"] is not None and found["number"].isdigit():
            return value / int(found["whole"])
        unit = (found["unit"] or "").strip()
        if value and math.isfinite(value) and self._units.setdefault(name, unit) != unit:
            before = self._units[name] or "no unit"
            raise ValueError(f"{name} is {found[0]!r}, and had {before} before; print one unit")
        return value

    def _number(self, name: str, text: str, *, is_counter: bool) -> float:
        readings = _readings(text)
        if not readings:
            hint = "where the comma parts two numbers, write it into the pattern"
            raise ValueError(f"{name} is {text!r}, which is not one number; {hint}")
        if len(self._marks) == 1 and self._marks <= readings.keys():
            return readings[min(self._marks)]
        first = next(iter(readings.values()))
        if "," in text and not is_counter and len(set(readings.values())) > 1:
            hint = "print a decimal point and nothing between thousands (LC_ALL=C)"
            raise ValueError(f"{name} is {text!r}: is the comma a decimal point? {hint}")
        return first


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
