"""The types of columns: what their cells may hold, checked as they are read.

SQLite keeps any value in any column, and either database can be written to by other programs. So
each type reads its cells strictly. All that this program reads passes here, and so does
`hpsearch db check`: what one of them finds damaged, the other does.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Dialect, Double, Integer, Text, TypeDecorator
from sqlalchemy.types import TypeEngine

from hpsearch.errors import Damaged
from hpsearch.store import codec, shapes

LATEST = 1e11
"""No time is later, in seconds since the epoch: calendars end some thousand years after it."""


NOTHING = "nothing where a value should be"  # A cell that is NULL in a column that may not be


class Cell(TypeDecorator[Any]):
    """A column's type, which reads its cells strictly."""

    impl: type[TypeEngine[Any]] = Text
    cache_ok = True

    def __init_subclass__(cls) -> None:
        cls.cache_ok = True  # SQLAlchemy asks each class for its own

    def read(self, cell: Any) -> Any:
        """The value of a cell as the database's driver gives it; not of NULL."""
        raise NotImplementedError

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """How SQLAlchemy reads a cell of a result."""
        read = self.read

        def process(cell: Any) -> Any:
            return None if cell is None else read(cell)

        return process


def damaged(cell: Any, wanted: str) -> Damaged:
    """A cell in place of what is wanted."""
    return Damaged(f"{_shown(cell)} where {wanted} should be")


def _shown(cell: Any) -> str:
    part = cell[:40] if isinstance(cell, str | bytes) else cell
    return repr(part)[:80]


class Words(Cell):
    """Text from any worker, traceback or person.

    PostgreSQL takes no NUL characters and neither database takes half a surrogate pair; they are
    written as the escapes a Python literal would have.
    """

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if value.isascii() and "\0" not in value:
            return value
        escaped = value.replace("\0", "\\x00")
        return escaped.encode("utf-8", "backslashreplace").decode()

    def read(self, cell: Any) -> str:
        if type(cell) is str and codec.storable(cell):
            return cell
        raise damaged(cell, "a text")


class StudyFile(Words):
    """The text of a study file; empty where a study was not made from one."""

    def read(self, cell: Any) -> str:
        text = super().read(cell)
        shapes.budget_in(text)
        return text


class Member(Cell):
    """A member of an enumeration, by its value."""

    def __init__(self, kind: type[enum.StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    def read(self, cell: Any) -> enum.StrEnum:
        try:
            return self.kind(cell)
        except ValueError:
            raise damaged(cell, f"one of {', '.join(self.kind)}") from None


class Whole(Cell):
    """A whole number that is not below 0."""

    impl = Integer
    low, high = 0, 2**31 - 1

    def read(self, cell: Any) -> int:
        if type(cell) is int and self.low <= cell <= self.high:
            return cell
        raise damaged(cell, f"a whole number from {self.low} to {self.high}")


class Big(Whole):
    """A whole number of 64 bits."""

    impl = BigInteger
    low, high = -(2**63), 2**63 - 1


class Number(Cell):
    """A number from `low` to `high`."""

    impl = Double

    def __init__(self, low: float = -math.inf, high: float = math.inf) -> None:
        super().__init__()
        self.low = low
        self.high = high

    def read(self, cell: Any) -> float:
        if type(cell) in (float, int) and self.low <= cell <= self.high:
            return float(cell)
        if self.low >= 0:
            raise damaged(cell, f"a number from {self.low:g} to {self.high:g}")
        raise damaged(cell, "a number" if self.high == math.inf else "a finite number")


class Flag(Cell):
    """True or false."""

    impl = Boolean

    def read(self, cell: Any) -> bool:
        if type(cell) in (bool, int) and cell in (0, 1):
            return bool(cell)
        raise damaged(cell, "true or false")


class Json(Cell):
    """JSON text of a shape on both databases, written and read by `hpsearch.store.codec`. On
    PostgreSQL it is `json`: `jsonb` sorts an object's keys and changes numbers such as 1e+23."""

    impl = JSON

    def __init__(self, shape: shapes.Shape) -> None:
        super().__init__(none_as_null=True)
        self.shape = shape

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else self.shape.plain(value)

    def read(self, cell: Any) -> Any:
        if type(cell) is not str:
            raise damaged(cell, "JSON")
        return self.shape.read(codec.decode_column(cell))
