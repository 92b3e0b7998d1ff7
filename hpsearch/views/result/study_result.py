"""The result of a study as one object, and its reading from the database."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from hpsearch.search.ranking.no_effect import NoEffect, no_effect
from hpsearch.search.ranking.selection import Ranked, counts, standing
from hpsearch.store.reading.best import COMPARED, best_trials, goals_of, with_again
from hpsearch.store.reading.queries import StudyHead, TrialRow, default_trial, seen_at
from hpsearch.store.reading.trust import StudyTrust, first_courses, study_trust


@dataclass(frozen=True)
class StudyResult:
    """The best trials of a study, and how sure it is that they are.

    Args:
        objectives: The names of its metrics, with the direction of each.
        ranked: The best trials, best first; with several objectives those that no other beats.
        seen_at: The resource at which trials first showed their value, by their numbers.
        default: The trial of the task's default settings, with what comes of it when it is trained
            again as its expectation; None if there was none that can be ranked.
        trust: How far the rungs can be trusted.
        no_effect: Parameters that have made no difference, if any are known.
    """

    study: StudyHead
    objectives: Sequence[tuple[str, str]]
    ranked: Sequence[Ranked[TrialRow]]
    seen_at: Mapping[int, float]
    default: TrialRow | None
    trust: StudyTrust
    no_effect: NoEffect | None = None

    @property
    def best(self) -> Ranked[TrialRow] | None:
        """The best trial; None with several objectives, and before a trial has a value."""
        return self.ranked[0] if self.ranked and self.study.has_best else None

    @property
    def tied(self) -> list[int]:
        """The numbers of the trials that cannot be told from the best one."""
        if self.best is None:
            return []
        return [each.trial.number for each in self.ranked[1:] if each.tied]

    @property
    def unknown(self) -> list[int]:
        """The numbers of the trials that have trained too little to tell them from the best one."""
        if self.best is None:
            return []
        return [each.trial.number for each in self.ranked if each.unknown]

    @property
    def gain(self) -> float | None:
        """The distance by which the best trial is better than the default settings; below 0 if it
        is worse, None if it is not known.

        Both count by what comes of them when they are trained again.
        """
        best, default = self.best, self.default
        if best is None or best.again is None or default is None or best.trial.violation > 0:
            return None
        difference = best.again.mean - standing(default)
        return difference if self.study.direction == "maximize" else -difference


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
