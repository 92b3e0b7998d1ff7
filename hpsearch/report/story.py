"""Everything that a page on a study tells, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sqlalchemy import Connection

from hpsearch.ranking.selection import Ranked
from hpsearch.report.frames.clocks import DrivenSpan, closed, driven_spans
from hpsearch.report.frames.progress import known_until
from hpsearch.result.reading import study_result
from hpsearch.result.study_result import StudyResult
from hpsearch.store.reading.course import CourseGoal, StudyCourse, study_course
from hpsearch.store.reading.queries import StudyHead, TrialRow
from hpsearch.store.reading.standing import StudyStatus, study_status
from hpsearch.study_file.models import StudySpec
from trials.contract import Unit

TOP = 10
"""So many of the best trials are listed."""


@dataclass(frozen=True, slots=True)
class StudyStory:
    """What there is to tell of a study."""

    study: StudyHead
    status: StudyStatus
    course: StudyCourse
    result: StudyResult
    now: float
    """When it was read, in seconds since the epoch."""
    until: float
    """Until when it is known."""
    attempts: pd.DataFrame
    """Its attempts, with an end each (`clocks.closed`)."""
    spans: Sequence[DrivenSpan]
    """When it was driven."""

    @property
    def goal(self) -> CourseGoal:
        """Its first objective."""
        return self.course.goals[0]

    @property
    def spec(self) -> StudySpec | None:
        """Its study file; None if there is none, or it cannot be read."""
        return self.result.trust.spec

    @property
    def written(self) -> Mapping[str, Any]:
        """Its study file as it is written, also where this version would not take it any more;
        empty if there is none."""
        return self.study.written

    @property
    def task_kind(self) -> str | None:
        """The kind of its task; None if no study file says it."""
        task = self.written.get("task")
        return str(task["kind"]) if isinstance(task, dict) and "kind" in task else None

    @property
    def unit(self) -> str:
        """What resources are counted in."""
        if self.spec is not None:
            return self.spec.budget.per_trial.unit.value
        budget = self.written.get("budget")
        per_trial = budget.get("per_trial") if isinstance(budget, dict) else None
        stated = per_trial if isinstance(per_trial, dict) else {}
        return next((unit.value for unit in Unit if unit.value in stated), "resource")

    @property
    def ranked(self) -> Sequence[Ranked[TrialRow]]:
        """The best trials that are listed, best first; with several objectives, the whole front."""
        return self.result.ranked[:TOP] if self.study.has_best else self.result.ranked

    @property
    def winner(self) -> Ranked[TrialRow] | None:
        """The best trial; None if there is no single one."""
        return self.result.best

    @property
    def is_going_on(self) -> bool:
        """Whether more may come."""
        return not self.status.summary.state.is_over


def study_story(connection: Connection, study: StudyHead, now: float) -> StudyStory:
    """Read everything that there is to tell of a study.

    Args:
        connection: To the database.
        study: The study.
        now: The time, in seconds since the epoch.

    Raises:
        Damaged: The database holds what this program never writes.
    """
    result = study_result(connection, study, TOP)
    course = study_course(connection, study, result.trust.spec)
    until = known_until(course, now, driven=study.driver is not None)
    attempts = closed(course.attempts, until)
    return StudyStory(
        study=study,
        status=study_status(connection, study, result.ranked),
        course=course,
        result=result,
        now=now,
        until=until,
        attempts=attempts,
        spans=driven_spans(attempts, [each.created for each in course.environments]),
    )
