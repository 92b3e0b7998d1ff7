"""Records as rows: every field of a record is the column of its name
(`hpsearch.store.schema`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from sqlalchemy import Column, Table

from hpsearch.domain.records import Attempt, ReportRecord, Request, StudyRecord, Trial
from hpsearch.store import schema

Values = dict[str, Any]  # the columns of a row, by name


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


def values_of(record: Any, **more: Any) -> Values:
    """The columns that a record's fields are, and more beside them."""
    values: Values = {}
    for field, column in column_names(record.__class__).items():
        values[column] = getattr(record, field)
    return values | more


def new_values(record: StudyRecord | Request, **more: Any) -> Values:
    """The same without its id, which the database gives it."""
    values = values_of(record, **more)
    del values["id"]
    return values
