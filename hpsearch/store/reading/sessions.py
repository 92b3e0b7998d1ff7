"""Readings of what a study ran on, and of what its workers have learnt."""

from __future__ import annotations

from sqlalchemy import Connection, select

from hpsearch.domain.records import Environment
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import environments, studies
from trials.loop.memory_facts import Facts


def session_at(connection: Connection, study: StudyHead, time: float) -> Environment | None:
    """What the driver's session ran on that was the latest at a time; the first one if none had
    begun, and None if none is recorded."""
    of_study = select(environments).where(environments.c.study_id == study.id)
    rows = connection.execute(of_study.order_by(environments.c.created, environments.c.id)).all()
    if not rows:
        return None
    begun = [row for row in rows if row.created <= time]
    row = begun[-1] if begun else rows[0]
    return Environment(row.created, row.revision, row.packages, row.device, row.data_fingerprint)


def memory_of(connection: Connection, study: StudyHead) -> Facts:
    """What a study's workers have learnt of the micro-batches that fit in memory."""
    known: Facts | None = connection.scalar(
        select(studies.c.memory).where(studies.c.id == study.id)
    )
    return known or {}
