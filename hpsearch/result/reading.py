"""The result of a study, read from the database."""

from __future__ import annotations

from sqlalchemy import Connection

from hpsearch.ranking.selection import counts
from hpsearch.result.study_result import StudyResult
from hpsearch.store.reading.best import COMPARED, best_trials, goals_of, with_again
from hpsearch.store.reading.queries import StudyHead, default_trial, seen_at
from hpsearch.store.reading.trust import study_trust


def study_result(
    connection: Connection, study: StudyHead, top: int = 1, *, where: str | None = None
) -> StudyResult:
    """The result of a study; with several objectives, with the whole front.

    Args:
        top: How many of the best trials are wanted. More are ranked, because ties count.
        where: Only trials that this expression selects.

    Raises:
        FilterError: `where` does not parse or names something unknown.
    """
    most = max(top, COMPARED) if study.has_best else None
    ranked = best_trials(connection, study, most, where=where)
    default = default_trial(connection, study) if study.has_best and where is None else None
    if default is not None and counts(default):
        with_again(connection, study, [default])
    else:
        default = None
    goals = goals_of(study)
    metrics = [goal.metric for goal in goals]
    return StudyResult(
        study=study,
        objectives=list(zip(metrics, study.directions, strict=True)),
        ranked=ranked,
        seen_at=seen_at(connection, study, ranked),
        default=default,
        trust=study_trust(connection, study),
    )
