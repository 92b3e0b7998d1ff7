"""What people and programs have asked of a study, and what came of it."""

from __future__ import annotations

from sqlalchemy import Connection, select

from hpsearch.domain.records import Request
from hpsearch.store.contents import request_of
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import requests


def study_requests(connection: Connection, study: StudyHead) -> list[Request]:
    """Everything that was asked of a study, the oldest first.

    Others write the table: what cannot be read counts as refused, with the reason.
    """
    of_study = requests.c.study_id == study.id
    numbers = connection.scalars(select(requests.c.id).where(of_study).order_by(requests.c.id))
    return [request_of(connection, number) for number in numbers.all()]
