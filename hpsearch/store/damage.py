"""What the database holds that this program never writes, and where: all of it, or what a reader
has found.

Reading a damaged value raises `Damaged`, which knows the value but not its place. `located` then
looks for the place, so that readers need not keep track of it for so rare a case. Each check here
reads the columns as they are, so that one damaged value hides no other. They are among those of
`hpsearch db check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    Select,
    Table,
    Text,
    cast,
    null,
    select,
)
from sqlalchemy.types import TypeEngine

from hpsearch.domain.facts import DecisionKind, ErrorKind, RequestKind, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, StudyState
from hpsearch.errors import Damaged
from hpsearch.store import codec, shapes
from hpsearch.store.schema import (
    Json,
    attempts,
    decisions,
    metadata,
    requests,
    studies,
    trials,
)


@dataclass(frozen=True, slots=True)
class Violation:
    """Something in the database that must not be."""

    study: str
    trial: int | None
    what: str

    def __str__(self) -> str:
        if self.trial is None:
            return f"{self.study}: {self.what}"
        return f"{self.study}, trial {self.trial}: {self.what}"


Which = ColumnElement[bool] | None
"""Which studies to check; None for all."""

Check = Callable[[Connection, Which], Iterator[Violation]]
"""Finds where something does not hold that must always be true."""


def words_are_known(connection: Connection, which: Which) -> Iterator[Violation]:
    """Every state, outcome, role and kind is one that this program knows."""
    for column, kind, name in (
        (studies.c.state, StudyState, "state of a study"),
        (trials.c.state, State, "state of a trial"),
        (trials.c.left_as, State, "state of a trial"),
        (trials.c.role, Role, "role of a trial"),
        (trials.c.error_kind, ErrorKind, "kind of failure"),
        (decisions.c.kind, DecisionKind, "kind of decision"),
        (attempts.c.outcome, Outcome, "outcome of an attempt"),
        (requests.c.kind, RequestKind, "kind of request"),
    ):
        known = [member.value for member in kind]
        rows = _rows(column.table, column, which)
        for row in connection.execute(rows.where(column.not_in(known))):
            yield Violation(row.study, row.of_trial, f"{row.raw!r} is no {name}{_key(row)}")


def json_is_whole(connection: Connection, which: Which) -> Iterator[Violation]:
    """Every JSON column holds what its shape says, at every depth."""
    for table in metadata.sorted_tables:
        for column in table.c:
            if isinstance(column.type, Json):
                yield from _column_is_whole(connection, which, column)


def _column_is_whole(
    connection: Connection, which: Which, column: Column[Any]
) -> Iterator[Violation]:
    cell = _raw(connection, column)
    for row in connection.execute(_rows(column.table, cell, which)):
        found = _problem(row.raw, column.type)
        if found is not None:
            yield Violation(row.study, row.of_trial, f"{column} holds {found}{_key(row)}")


def columns_go_together(connection: Connection, which: Which) -> Iterator[Violation]:
    """Parameters are of the kind of their distributions, and values as many as the study has
    directions."""
    cells = [_raw(connection, column) for column in _TOGETHER]
    statement = select(studies.c.name, trials.c.number, *cells)
    statement = statement.join_from(studies, trials, trials.c.study_id == studies.c.id)
    for name, number, *raw in connection.execute(_of(statement, which)):
        if not _are_whole(raw):
            continue  # told by `json_is_whole`
        directions, objective_values, params, written = _decoded(raw)
        miscounted = shapes.miscounted(objective_values, directions)
        if miscounted is not None:
            yield Violation(name, number, f"trials.objective_values holds {miscounted}")
        distributions = {}
        for parameter, text in written.items():
            distributions[parameter] = shapes.distribution_of(text)
        unlike = shapes.unlike(params, distributions)
        if unlike is not None:
            yield Violation(name, number, f"trials.params holds {unlike}")


def _are_whole(raw: Sequence[Any]) -> bool:
    """Whether cells of the columns `_TOGETHER` each hold what their shape says."""
    for cell, column in zip(raw, _TOGETHER, strict=True):
        if _problem(cell, column.type) is not None:
            return False
    return True


def _decoded(raw: Sequence[Any]) -> list[Any]:
    return [None if cell is None else codec.decode_column(cell) for cell in raw]


def study_files_can_be_read(connection: Connection, which: Which) -> Iterator[Violation]:
    """The study file of a study that was made from one is YAML, with a budget."""
    written = select(studies.c.name, studies.c.spec)
    for name, spec in connection.execute(_of(written, which)):
        try:
            shapes.budget_in(spec)
        except Damaged as damage:
            yield Violation(name, None, f"studies.spec holds {damage.what}")


CHECKS: tuple[Check, ...] = (
    words_are_known,
    json_is_whole,
    columns_go_together,
    study_files_can_be_read,
)


def located(connection: Connection, error: Damaged) -> Damaged:
    """The error of a reader, with the study, trial and column of the value that it found; unchanged
    if they are not found.

    If several values are damaged in the same way, it names one of them.
    """
    found: list[Violation] = []
    for check in CHECKS:
        found += check(connection, None)
    if not found:
        return error
    same = [violation for violation in found if error.what in violation.what]
    place = str((same or found)[0])
    others = len(found) - 1
    if others:
        place += f" (and {others} more)"
    return Damaged(error.what, place)


_TOGETHER = (
    studies.c.directions,
    trials.c.objective_values,
    trials.c.params,
    trials.c.distributions,
)


def _problem(raw: str | bytes | None, kind: TypeEngine[Any]) -> str | None:
    """What is wrong with a cell of a JSON column, as a reader would say it; None for NULL."""
    assert isinstance(kind, Json)
    if raw is None:
        return None
    try:
        found = kind.shape.find_wrong(codec.decode_column(raw))
    except Damaged as damage:
        return damage.what
    return None if found is None else str(found)


def _rows(table: Table, cell: ColumnElement[Any], which: Which) -> Select[Any]:
    """A cell of every row of a table, with the study, the trial and what else is in the row's
    key."""
    study = studies.c.name
    trial = table.c.number if table is trials else table.c.get("trial", null())
    named = [study.label("study"), trial.label("of_trial"), cell.label("raw")]
    statement = select(*named, *_rest_of_key(table))
    if table is studies:
        statement = statement.select_from(studies)
    else:
        same_study = table.c.study_id == studies.c.id
        statement = statement.join_from(studies, table, same_study)
    statement = statement.order_by(studies.c.id, *table.primary_key)
    return _of(statement, which)


def _rest_of_key(table: Table) -> list[Column[Any]]:
    """The columns of a table's key that name neither a study nor a trial."""
    named = (studies.c.id, trials.c.number)
    rest = []
    for column in table.primary_key:
        if column.name not in ("study_id", "trial") and column not in named:
            rest.append(column)
    return rest


def _raw(connection: Connection, column: Column[Any]) -> ColumnElement[Any]:
    """A JSON column as its text, whatever was written there: SQLite would not even read what is no
    UTF-8."""
    return cast(column, LargeBinary if connection.dialect.name == "sqlite" else Text)


def _key(row: Any) -> str:
    """What tells a row from others of its trial or study: ``(resource 3)``."""
    told = []
    for name, value in row._mapping.items():
        if name not in ("study", "of_trial", "raw"):
            told.append(f"{name} {value:g}")
    if not told:
        return ""
    return f" ({', '.join(told)})"


def _of(statement: Select[Any], which: Which) -> Select[Any]:
    return statement if which is None else statement.where(which)
