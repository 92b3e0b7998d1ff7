"""A connection that reads all rows of a SELECT at once, strictly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from sqlalchemy import Column, Connection, Label, Result, Select, Table
from sqlalchemy.exc import DataError, DBAPIError

from hpsearch.errors import Damaged
from hpsearch.store.cells import NOTHING
from hpsearch.store.connecting.open_files import OpenFiles

_DAMAGE = ("malformed JSON", "JSON cannot hold BLOB values")
"""How SQLite begins to say that a single value is damaged."""


class Selecting(Connection):
    """A connection that has read all rows of a SELECT when it returns them, so that what is damaged
    in them is met here, and not by those who go through them."""

    _mend: Callable[[], str] | None = None
    hiding = ""  # SQL before each SELECT, which hides rows from it
    files: OpenFiles | None = None  # of an SQLite database that is not in memory
    serves_once = False  # true if its file is taken to be immutable, for one use

    @contextmanager
    def mending(self, mend: Callable[[], str]) -> Iterator[None]:
        """Hide damage within the block. `mend` is called when a SELECT first meets damage, and
        returns SQL that hides it, put before that SELECT and all later ones; empty lets
        `Damaged` pass."""
        self._mend = mend
        try:
            yield
        finally:
            self._mend = None
            self.hiding = ""

    def execute(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        """Execute a statement, as SQLAlchemy does."""
        if not isinstance(statement, Select):
            return super().execute(statement, parameters, **options)
        try:
            return self._selected(statement, parameters)
        except Damaged:
            if self._mend is None or self.hiding:
                raise
            self.hiding = self._mend()
            if not self.hiding:
                raise
        return self._selected(statement, parameters)

    def scalar(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        """The first cell of the first row; None if there is none."""
        return self.execute(statement, parameters, **options).scalar()

    def scalars(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        """The first cell of each row."""
        return self.execute(statement, parameters, **options).scalars()

    def _selected(self, statement: Select[Any], parameters: Any) -> Result[Any]:
        try:
            found = super().execute(statement, parameters).freeze()
        except DBAPIError as error:
            reason, _, _ = str(error.orig).partition("\n")
            # PostgreSQL's word for a number or character in JSON that it has no type for.
            if isinstance(error, DataError) or reason.startswith(_DAMAGE):
                raise Damaged(reason) from error
            raise
        for place, column in enumerate(statement.selected_columns):
            if not _may_be_null(column) and None in map(itemgetter(place), found.data):
                raise Damaged(NOTHING)
        return found()


def _may_be_null(column: Any) -> bool:
    if isinstance(column, Label):
        column = column.element
    if not isinstance(column, Column) or not isinstance(column.table, Table):
        return True
    return bool(column.nullable)


def hide(
    connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
) -> tuple[str, Any]:
    if context is not None and context.isinsert is False and statement.startswith("SELECT"):
        assert isinstance(connection, Selecting)
        statement = connection.hiding + statement
    return statement, parameters
