"""The recorded environment that a trial was trained in."""

from sqlalchemy import Connection, and_, select

from hpsearch.domain.records import Environment
from hpsearch.store.contents import columns_in
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import ATTEMPT, ENVIRONMENT, environments
from trials.running.arithmetic import Arithmetic


def environments_of(connection: Connection, study: StudyHead) -> list[Environment]:
    """The environments of a study's drivers, the oldest first."""
    columns = columns_in(environments, Environment)
    statement = select(*columns).where(ENVIRONMENT.study_id == study.id)
    rows = connection.execute(statement.order_by(ENVIRONMENT.created, ENVIRONMENT.id))
    return [Environment(*row) for row in rows]


def session_at(connection: Connection, study: StudyHead, time: float) -> Environment | None:
    """The environment of a driver's latest session before a time, else of the first one; None if no
    session is recorded."""
    sessions = environments_of(connection, study)
    begun = [session for session in sessions if session.created <= time]
    return next(iter(begun[-1:] or sessions), None)


def recorded_arithmetic(connection: Connection, study: StudyHead, number: int) -> Arithmetic | None:
    """The arithmetic of a trial's first attempt; None if it is not recorded."""
    of_trial = and_(ATTEMPT.study_id == study.id, ATTEMPT.trial == number)
    recorded = select(ATTEMPT.arithmetic).where(of_trial, ATTEMPT.arithmetic.is_not(None))
    plain = connection.scalar(recorded.order_by(ATTEMPT.number).limit(1))
    return None if plain is None else Arithmetic.from_plain(plain)
