"""The result of a study, read from the database."""

from __future__ import annotations

import math

from sqlalchemy import Connection

from hpsearch.ranking.no_effect import no_effect
from hpsearch.ranking.selection import counts
from hpsearch.result.study_result import StudyResult
from hpsearch.store.reading.best import COMPARED, best_trials, goals_of, with_again
from hpsearch.store.reading.queries import StudyHead, default_trial, seen_at
from hpsearch.store.reading.trust import first_courses, study_trust


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
    trust = study_trust(connection, study)
    total = math.inf if trust.spec is None else trust.spec.budget.per_trial.total
    courses = first_courses(connection, study) if metrics else []
    return StudyResult(
        study=study,
        objectives=list(zip(metrics, study.directions, strict=True)),
        ranked=ranked,
        seen_at=seen_at(connection, study, ranked),
        default=default,
        trust=trust,
        no_effect=no_effect(courses, metrics, total),
    )
