"""What people and programs have asked of a study, and what came of it."""

from __future__ import annotations

from sqlalchemy import Connection, select

from hpsearch.domain.records import Request
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.rows import REQUEST_COLUMNS, request_record
from hpsearch.store.schema import requests


def study_requests(connection: Connection, study: StudyHead) -> list[Request]:
    """Everything that was asked of a study, the oldest first."""
    of_study = requests.c.study_id == study.id
    found = connection.execute(select(*REQUEST_COLUMNS).where(of_study).order_by(requests.c.id))
    return [request_record(row) for row in found]
