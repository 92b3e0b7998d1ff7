"""The types of columns. SQLite keeps any value in any column, and people may write into either
database by hand, so each cell is checked as it is read.
"""

import enum
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from types import NoneType
from typing import Annotated, Any, get_origin

from pydantic import PlainValidator, TypeAdapter, ValidationError
from sqlalchemy import JSON, BigInteger, Boolean, Dialect, Double, Integer, Text, TypeDecorator
from sqlalchemy.types import TypeEngine

from hpsearch.errors import Damaged
from hpsearch.store import codec
from trials.checkpoints.disk.names import UnsafeName, component

FLOAT = frozenset({float})
SHOWN_CHARACTERS = 60  # of a damaged cell

_SCALARS: dict[type, type[TypeEngine[Any]]]
_SCALARS = {str: Text, int: Integer, float: Double, bool: Boolean}


StoredDistribution = Annotated[Any, PlainValidator(codec.distribution_of)]
"""A distribution of Optuna's, as a cell holds it."""
Distributions = dict[str, StoredDistribution]


@cache
def _adapter_of(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


@lru_cache(maxsize=1024)
def _distributions_of(text: str) -> Any:
    """The distributions of a trial, shared by all that have the same: nobody changes them."""
    return _adapter_of(Distributions).validate_python(codec.decode(text))


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _text(value: str | None) -> str | None:
    return None if value is None else codec.clean(str(value))


def _json(value: Any) -> str | None:
    return None if value is None else codec.encode(value)


class Cell(TypeDecorator[Any]):
    """The type of a column: text, a number or a truth value; anything else is stored as JSON.

    Args:
        column: The name of the column with its table's, for errors.
        of: The Python type of its values. Enumerations are stored as their values.
        big: True for a whole number that may need 64 bits.
        is_name: True for a text that names files, such as a study's.
    """

    impl: type[TypeEngine[Any]] = Text
    cache_ok = True

    def __init__(self, column: str, of: Any, *, big: bool = False, is_name: bool = False) -> None:
        super().__init__()
        is_enum = isinstance(of, type) and issubclass(of, enum.StrEnum)
        stored = Text if is_enum else _SCALARS.get(of)
        self.column = column
        self.of = of
        self.is_json = stored is None
        self.is_name = is_name
        if stored is None:
            # On PostgreSQL it is `json`: `jsonb` sorts keys and changes numbers such as 1e+23.
            self.impl = JSON(none_as_null=True)  # type: ignore[assignment]  # an instance has one
        else:
            self.impl = BigInteger() if big else stored()  # type: ignore[assignment]
        self._adapter = _adapter_of(of)
        self._members = {member.value: member for member in of} if is_enum else {}

    @property
    def is_number(self) -> bool:
        return self.of in (int, float)

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        if self.is_json:
            return _json
        if self.of is float:
            return _number
        return None if self.of in _SCALARS and self.of is not str else _text

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        def process(cell: Any) -> Any:
            return None if cell is None else self.read(cell)

        return process

    def read_all(self, cells: Sequence[Any]) -> Sequence[Any]:
        """The values of many cells of the column, as `read` gives them and NULL as None. Nearly all
        cells are as they should be, which their types show much faster than pydantic."""
        if set(map(type, cells)) <= {self.of, NoneType} and not self.is_name:
            return cells
        empty = "{}" if get_origin(self.of) is dict else None
        values: list[Any] = []
        for cell in cells:
            if cell is None:
                values.append(None)
            elif cell == empty:
                values.append({})
            else:
                values.append(self._members.get(cell) or self.read(cell))
        return values

    def read(self, cell: Any) -> Any:
        """The value of a cell that is not NULL. Raises Damaged if it has another type."""
        try:
            if self.of == Distributions and isinstance(cell, str):
                return _distributions_of(cell)
            value = codec.decode(cell) if self.is_json else cell
            if self._is_plain(value):  # with keys that all rows share
                return {sys.intern(key): each for key, each in value.items()}
            value = self._adapter.validate_python(value)
            return component(value) if self.is_name else value
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = "".join(f"[{step!r}]" for step in first["loc"])
            why = f"{first['msg']}, at {place}" if place else first["msg"]
        except UnsafeName as error:
            why = str(error)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            why = "it is not JSON" if self.is_json else "it cannot be read"
        shown = repr(cell)[:SHOWN_CHARACTERS]
        raise Damaged(f"{self.column} holds {shown}: {why}")

    def _is_plain(self, value: Any) -> bool:
        """True if a value is an object of JSON that is sure to be of the column's type."""
        if type(value) is not dict:
            return False
        is_free = self.of == dict[str, Any]
        return is_free or (self.of == dict[str, float] and set(map(type, value.values())) <= FLOAT)
