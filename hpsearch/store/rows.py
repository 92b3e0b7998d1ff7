"""Records to rows and back: every field of a record is the column of its name
(`hpsearch.store.schema`)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from typing import Any, TypeVar, get_args, get_type_hints

from sqlalchemy import Column, Table

from hpsearch.domain.records import Attempt, ReportRecord, Request, StudyRecord, Trial
from hpsearch.errors import Damaged
from hpsearch.store import codec, schema, shapes

Values = dict[str, Any]
"""The columns of a row, by name."""

R = TypeVar("R")

Reader = Callable[[Any], Any]
"""Turns a cell into the value of a field."""

NOT_A_NUMBER = ("value", "expected", "expected_deviation")
"""Fields that are NULL where they are not a number: SQLite has no NaN."""


def stored_fields(record: type) -> list[Field[Any]]:
    """The fields of a record that are columns, in their order."""
    return [field for field in fields(record) if "elsewhere" not in field.metadata]


def columns_in(table: Table, record: type) -> tuple[Column[Any], ...]:
    """The columns that `record_of` builds a record from."""
    return tuple(table.c[schema.column_name(field)] for field in stored_fields(record))


STUDY_COLUMNS = columns_in(schema.studies, StudyRecord)
TRIAL_COLUMNS = columns_in(schema.trials, Trial)
ATTEMPT_COLUMNS = columns_in(schema.attempts, Attempt)
REPORT_COLUMNS = columns_in(schema.reports, ReportRecord)
REQUEST_COLUMNS = columns_in(schema.requests, Request)

# ---------------------------------------------------------------------------------- rows to records


def readers_of(record: type[Any]) -> dict[str, Reader]:
    """How the fields of a record are read whose columns have another type, by name."""
    readers = {}
    for name, type_ in get_type_hints(record).items():
        kind = enum_in(type_)
        if kind is not None:
            readers[name] = _member_reader(kind)
    return readers


def enum_in(type_: Any) -> type[enum.StrEnum] | None:
    """The enumeration that a type is, or names beside None; None if there is none."""
    for each in (type_, *get_args(type_)):
        if isinstance(each, type) and issubclass(each, enum.StrEnum):
            return each
    return None


def _member_reader(kind: type[enum.StrEnum]) -> Reader:
    def read(cell: str | None) -> enum.StrEnum | None:
        return None if cell is None else codec.member(kind, cell)

    return read


_READERS: dict[type[Any], dict[str, Reader]] = {
    kind: readers_of(kind) for kind in (StudyRecord, Trial, Attempt, ReportRecord, Request)
}


def record_of(record: type[R], row: Sequence[Any]) -> R:
    """The record of a row of `columns_in`.

    Raises:
        Damaged: A column that holds a word holds an unknown one.
    """
    made = record(*row)
    for name, read in _READERS[record].items():
        setattr(made, name, read(getattr(made, name)))
    return made


def study_record(row: Sequence[Any]) -> StudyRecord:
    """The record of a row of `STUDY_COLUMNS`."""
    study = record_of(StudyRecord, row)
    study.directions = tuple(study.directions)
    return study


def trial_record(row: Sequence[Any]) -> Trial:
    """The record of a row of `TRIAL_COLUMNS`, without its attempts and reports.

    Raises:
        Damaged: A word is unknown, or a parameter is not of its distribution.
    """
    trial = record_of(Trial, row)
    found = shapes.unlike(trial.params, trial.distributions)
    if found is not None:
        raise Damaged(str(found))
    return trial


def attempt_record(row: Sequence[Any]) -> Attempt:
    """The record of a row of `ATTEMPT_COLUMNS`."""
    return record_of(Attempt, row)


def report_record(row: Sequence[Any]) -> ReportRecord:
    """The record of a row of `REPORT_COLUMNS`."""
    return record_of(ReportRecord, row)


def request_record(row: Sequence[Any]) -> Request:
    """The record of a row of `REQUEST_COLUMNS`."""
    return record_of(Request, row)


# ---------------------------------------------------------------------------------- records to rows


def values_of(record: Any, **more: Any) -> Values:
    """The columns that a record's fields are.

    Args:
        record: Any record.
        more: Columns beside them.
    """
    values: Values = {}
    for field in stored_fields(type(record)):
        value = getattr(record, field.name)
        if isinstance(value, enum.Enum):
            value = value.value
        if field.name in NOT_A_NUMBER:
            value = _number(value)
        values[schema.column_name(field)] = value
    return values | more


def study_values(record: StudyRecord) -> Values:
    """The columns of a study that its record holds, except its id."""
    values = values_of(record, directions=list(record.directions))
    del values["id"]
    return values


def answer_values(request: Request) -> Values:
    """What a driver writes of a request, with the id of its row as `of_request`."""
    return {
        "of_request": request.id,
        "handled": request.handled,
        "refused": request.refused,
        "trial": request.trial,
    }


def _number(value: float | None) -> float | None:
    """The value, or None if it is not a number."""
    if value is None or value != value:
        return None
    return float(value)
