"""The data of a report: all that its page shows, read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from sqlalchemy import Connection

from hpsearch.search.ranking.selection import Ranked
from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.history_frames import HistoryFrames, history_frames
from hpsearch.store.reading.queries import StudyHead, TrialRow
from hpsearch.store.reading.standing import StudyStatus, study_status
from hpsearch.study_file.models import StudySpec
from hpsearch.views.report.compute_time import closed
from hpsearch.views.result.study_result import StudyResult, study_result

TOP = 10
"""The number of best trials that are listed."""


Suggested = Callable[[str], str]
"""Completes a command, such as ``best NAME``, so that it can be repeated where it is read."""


@dataclass(frozen=True, slots=True)
class ReportData:
    """The records of a study, as its page shows them."""

    study: StudyHead
    status: StudyStatus
    history: HistoryFrames
    result: StudyResult
    now: float
    """The time at which it was read, in seconds since the epoch."""
    until: float
    """The time until which it is known."""
    attempts: pd.DataFrame
    """Its attempts, with an end each (`compute_time.closed`)."""
    command: Suggested

    @property
    def goal(self) -> GoalColumns:
        """Its first objective."""
        return self.history.goals[0]

    @property
    def spec(self) -> StudySpec | None:
        """Its study file; None if there is none, or it cannot be read."""
        return self.result.trust.spec

    @property
    def unit(self) -> str:
        """The unit of its resources."""
        return "resource" if self.spec is None else self.spec.budget.per_trial.unit.value

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
        """True if more may come."""
        return not self.status.summary.state.is_over


def report_data(
    connection: Connection,
    study: StudyHead,
    now: float,
    command: Suggested = "hpsearch {}".format,
) -> ReportData:
    """Read all that the report of a study shows; `now` is in seconds since the epoch.

    Raises:
        Damaged: The database holds what this program never writes.
    """
    result = study_result(connection, study, TOP)
    history = history_frames(connection, study, result.trust.spec)
    until = history.last if study.driver is None else now
    return ReportData(
        study=study,
        status=study_status(connection, study, result.ranked),
        history=history,
        result=result,
        now=now,
        until=until,
        attempts=closed(history.attempts, until),
        command=command,
    )
