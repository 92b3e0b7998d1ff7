"""Records to rows and back: every field of a record is the column of its name
(`hpsearch.store.schema`)."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from sqlalchemy import Column, Table

from hpsearch.domain.records import Attempt, ReportRecord, Request, StudyRecord, Trial
from hpsearch.errors import Damaged
from hpsearch.store import schema, shapes

Values = dict[str, Any]  # the columns of a row, by name

NOT_A_NUMBER = ("value", "expected", "expected_deviation", "expected_low", "expected_high")
"""Fields that are NULL where they are not a number: SQLite has no NaN."""


@cache
def column_names(record: type) -> Mapping[str, str]:
    """The column of each field that is one, in their order."""
    stored = [field for field in fields(record) if "elsewhere" not in field.metadata]
    return {field.name: schema.column_name(field) for field in stored}


def columns_in(table: Table, record: type) -> tuple[Column[Any], ...]:
    """The columns that a record is built from."""
    return tuple(table.c[name] for name in column_names(record).values())


STUDY_COLUMNS = columns_in(schema.studies, StudyRecord)
TRIAL_COLUMNS = columns_in(schema.trials, Trial)
ATTEMPT_COLUMNS = columns_in(schema.attempts, Attempt)
REPORT_COLUMNS = columns_in(schema.reports, ReportRecord)
REQUEST_COLUMNS = columns_in(schema.requests, Request)

# ---------------------------------------------------------------------------------- rows to records


def study_record(row: Sequence[Any]) -> StudyRecord:
    """The record of a row of `STUDY_COLUMNS`."""
    study = StudyRecord(*row)
    study.directions = tuple(study.directions)
    return study


def trial_record(row: Sequence[Any]) -> Trial:
    """The record of a row of `TRIAL_COLUMNS`, without its attempts and reports."""
    trial = Trial(*row)
    found = shapes.unlike(trial.params, trial.distributions)
    if found is not None:
        raise Damaged(found)
    return trial


# ---------------------------------------------------------------------------------- records to rows


def values_of(record: Any, **more: Any) -> Values:
    """The columns that a record's fields are, and more beside them."""
    values: Values = {}
    for field, column in column_names(record.__class__).items():
        value = getattr(record, field)
        if isinstance(value, enum.Enum):
            value = value.value
        if field in NOT_A_NUMBER:
            value = _number(value)
        values[column] = value
    return values | more


def study_values(record: StudyRecord) -> Values:
    """The columns of a study that its record holds, except its id."""
    values = values_of(record, directions=list(record.directions))
    del values["id"]
    return values


def answer_values(request: Request) -> Values:
    """The columns that a driver writes of a request, with the id of its row as `of_request`."""
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
