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
from hpsearch.store.reading.course import CourseGoal, StudyCourse, study_course
from hpsearch.store.reading.queries import StudyHead, TrialRow, best_trials, seen_at
from hpsearch.store.reading.standing import StudyStatus, study_status
from hpsearch.store.reading.trust import StudyTrust, study_trust
from hpsearch.study_file.models import StudySpec
from hpsearch.words.answer import gained_by
from trials.contract import Unit

TOP = 10
"""So many of the best trials are read, and listed."""


@dataclass(frozen=True, slots=True)
class StudyStory:
    """What there is to tell of a study."""

    study: StudyHead
    status: StudyStatus
    course: StudyCourse
    trust: StudyTrust
    ranked: Sequence[Ranked[TrialRow]]
    """The best trials, best first; with several objectives, those that no other one beats."""
    seen_at: Mapping[int, float]
    gained: str | None
    """What it gained over the default settings, in a sentence."""
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
        return self.trust.spec

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
    def winner(self) -> Ranked[TrialRow] | None:
        """The best trial; None if there is no single one."""
        return self.ranked[0] if self.ranked and self.study.has_best else None

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
    rungs = study_trust(connection, study)
    course = study_course(connection, study, rungs.spec)
    has_order = study.has_best or len(study.directions) > 1
    ranked = _best(connection, study) if has_order else []
    until = known_until(course, now, driven=study.driver is not None)
    attempts = closed(course.attempts, until)
    return StudyStory(
        study=study,
        status=study_status(connection, study),
        course=course,
        trust=rungs,
        ranked=ranked,
        seen_at=seen_at(connection, study, ranked),
        gained=gained_by(connection, study),
        now=now,
        until=until,
        attempts=attempts,
        spans=driven_spans(attempts, [each.created for each in course.environments]),
    )


def _best(connection: Connection, study: StudyHead) -> list[Ranked[TrialRow]]:
    """The best trials; with several objectives, the whole front."""
    several = len(study.directions) > 1
    return best_trials(connection, study, None if several else TOP)
