"""What stands in the database that this program never writes, and where: all of it, or what a reader has come upon.

Reading a damaged value raises `Damaged`, which knows the value and not its place. `located` then looks for it: nobody
carries places along for the case that hardly ever is. Each check here reads the columns as they are, so that one
damaged value hides no other. They are among those of `hpsearch db check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, LargeBinary, Select, Table, Text, cast, null, select
from sqlalchemy.types import TypeEngine

from hpsearch.lifecycle import State
from hpsearch.records import Outcome, StudyState
from hpsearch.store import codec, shapes
from hpsearch.store.schema import Json, attempts, metadata, studies, trials


@dataclass(frozen=True, slots=True)
class Violation:
    """Something in the database that must not be."""

    study: str
    trial: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.study}" + (f", trial {self.trial}" if self.trial is not None else "") + f": {self.what}"


Which = ColumnElement[bool] | None
"""Which studies to check; None for all."""

Check = Callable[[Connection, Which], Iterator[Violation]]
"""Finds where something does not hold that must always be true."""


def words_are_known(connection: Connection, which: Which) -> Iterator[Violation]:
    """Every state and outcome is one that this program knows."""
    for column, kind, name in (
        (studies.c.state, StudyState, "state of a study"),
        (trials.c.state, State, "state of a trial"),
        (attempts.c.outcome, Outcome, "outcome of an attempt"),
    ):
        known = [member.value for member in kind]
        for row in connection.execute(_rows(column.table, column, which).where(column.not_in(known))):
            yield Violation(row.study, row.of_trial, f"{row.raw!r} is no {name}{_key(row)}")


def json_is_whole(connection: Connection, which: Which) -> Iterator[Violation]:
    """Every JSON column holds what its shape says, at every depth."""
    for table in metadata.sorted_tables:
        for column in table.c:
            if not isinstance(column.type, Json):
                continue
            for row in connection.execute(_rows(table, _raw(connection, column), which)):
                if row.raw is not None and (found := _problem(row.raw, column.type)) is not None:
                    yield Violation(row.study, row.of_trial, f"{column} holds {found}{_key(row)}")


def columns_go_together(connection: Connection, which: Which) -> Iterator[Violation]:
    """Parameters are of the kind of their distributions, and values as many as the study has directions."""
    statement = select(studies.c.name, trials.c.number, *(_raw(connection, column) for column in _TOGETHER))
    statement = statement.join_from(studies, trials, trials.c.study_id == studies.c.id)
    for name, number, *raw in connection.execute(_of(statement, which)):
        cells = list(zip(raw, _TOGETHER, strict=True))
        if any(cell is not None and _problem(cell, column.type) is not None for cell, column in cells):
            continue  # told by `json_is_whole`
        values: list[Any] = [None if cell is None else codec.decode_column(cell) for cell in raw]
        directions, objective_values, params, drawn_from = values
        if (found := shapes.miscounted(objective_values, directions)) is not None:
            yield Violation(name, number, f"trials.objective_values holds {found}")
        distributions = {parameter: shapes.distribution_of(text) for parameter, text in drawn_from.items()}
        if (found := shapes.unlike(params, distributions)) is not None:
            yield Violation(name, number, f"trials.params holds {found}")


def study_files_can_be_read(connection: Connection, which: Which) -> Iterator[Violation]:
    """The study file of a study that was made from one is YAML, with a budget."""
    for name, spec in connection.execute(_of(select(studies.c.name, studies.c.spec), which)):
        try:
            shapes.budget_in(spec)
        except codec.Damaged as damage:
            yield Violation(name, None, f"studies.spec holds {damage.what}")


CHECKS: tuple[Check, ...] = (words_are_known, json_is_whole, columns_go_together, study_files_can_be_read)


def located(connection: Connection, error: codec.Damaged) -> codec.Damaged:
    """The error of a reader with the study, trial and column of what it came upon; as it is where they are not found.

    Where several values are damaged, it is one that reads the same.
    """
    found = [violation for check in CHECKS for violation in check(connection, None)]
    if not found:
        return error
    same = [violation for violation in found if error.what in violation.what]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return codec.Damaged(error.what, f"{(same or found)[0]}{more}")


_TOGETHER = (studies.c.directions, trials.c.objective_values, trials.c.params, trials.c.distributions)


def _problem(raw: str | bytes, kind: TypeEngine[Any]) -> str | None:
    """What is wrong with a cell of a JSON column, as a reader would say it."""
    assert isinstance(kind, Json)
    try:
        found = kind.shape(codec.decode_column(raw))
    except codec.Damaged as damage:
        return damage.what
    return None if found is None else str(found)


def _rows(table: Table, cell: ColumnElement[Any], which: Which) -> Select[Any]:
    """A cell of every row of a table, with the study, the trial and what else is in the row's key."""
    of_trial = table.c.number if table is trials else table.c.get("trial", null())
    rest = [column for column in table.primary_key if column.name not in ("study_id", "trial")]
    rest = [column for column in rest if column not in (studies.c.id, trials.c.number)]
    columns = [studies.c.name.label("study"), of_trial.label("of_trial"), cell.label("raw"), *rest]
    joined = studies if table is studies else studies.join(table, table.c.study_id == studies.c.id)
    return _of(select(*columns).select_from(joined).order_by(studies.c.id, *table.primary_key), which)


def _raw(connection: Connection, column: Column[Any]) -> ColumnElement[Any]:
    """A JSON column as its text, whatever was written there: SQLite would not even read what is no UTF-8."""
    return cast(column, LargeBinary if connection.dialect.name == "sqlite" else Text)


def _key(row: Any) -> str:
    """What tells a row from others of its trial or study: ``(resource 3)``."""
    rest = {k: v for k, v in row._mapping.items() if k not in ("study", "of_trial", "raw")}
    told = ", ".join(f"{name} {value:g}" for name, value in rest.items())
    return f" ({told})" if told else ""


def _of(statement: Select[Any], which: Which) -> Select[Any]:
    return statement if which is None else statement.where(which)
