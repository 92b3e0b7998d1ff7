"""The environment that a trial was trained in, as far as it is on record."""

from __future__ import annotations

from sqlalchemy import Connection, and_, select

from hpsearch.domain.records import Environment
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import attempts, environments
from trials.running.arithmetic import Arithmetic


def session_at(connection: Connection, study: StudyHead, time: float) -> Environment | None:
    """The environment of the latest session of a driver at a time; the first one if none had
    begun, and None if none is recorded."""
    of_study = select(environments).where(environments.c.study_id == study.id)
    rows = connection.execute(of_study.order_by(environments.c.created, environments.c.id)).all()
    if not rows:
        return None
    begun = [row for row in rows if row.created <= time]
    row = begun[-1] if begun else rows[0]
    return Environment(row.created, row.revision, row.packages, row.device, row.data_fingerprint)


def recorded_arithmetic(connection: Connection, study: StudyHead, number: int) -> Arithmetic | None:
    """The arithmetic of a trial's first attempt; None if that is not recorded."""
    of_trial = and_(attempts.c.study_id == study.id, attempts.c.trial == number)
    recorded = select(attempts.c.arithmetic).where(of_trial, attempts.c.arithmetic.is_not(None))
    plain = connection.scalar(recorded.order_by(attempts.c.number).limit(1))
    return None if plain is None else Arithmetic.from_plain(plain)
