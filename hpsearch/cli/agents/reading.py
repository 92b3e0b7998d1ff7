"""What agents can read: the same as the commands print for programs, and no more than was asked
for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from hpsearch.cli.opening import viewing
from hpsearch.cli.output import finite
from hpsearch.cli.results.best import as_plain
from hpsearch.cli.results.compare import comparison_as_plain
from hpsearch.cli.results.ls import as_plain as study_as_plain
from hpsearch.cli.results.show import trial_as_plain
from hpsearch.cli.results.status import status_as_plain
from hpsearch.report.story import study_story
from hpsearch.report.writing import markdown_report
from hpsearch.store.reading.logs import logs_of
from hpsearch.store.reading.queries import (
    StudyHead,
    best_trials,
    find_study,
    seen_at,
    trial_detail,
    trial_rows,
)
from hpsearch.store.reading.standing import list_studies, study_status
from hpsearch.store.reading.trust import study_trust
from hpsearch.terminal.answer import luck, others
from hpsearch.words import trust
from hpsearch.words.answer import gained_by

Plain = dict[str, Any]


class Reader:
    """Reads the studies of one database; each call sees them as they are at that moment.

    Every method raises a `HpsearchError` that says what is wrong and what to do.

    Args:
        storage: The database's URL.
    """

    def __init__(self, storage: str) -> None:
        self._storage = storage

    def studies(self) -> list[Plain]:
        """All studies, the newest first, with their states and best trials."""
        with viewing(self._storage) as connection:
            return [_plain(study_as_plain(each)) for each in list_studies(connection)]

    def status(self, study: str) -> Plain:
        """Where a study stands: budget, running trials, failures by cause, trust in its rungs."""
        with self._study(study) as (connection, head):
            found = study_status(connection, head)
            rungs = study_trust(connection, head)
        return _plain(status_as_plain(found, found.checkpoint_bytes, rungs))

    def best(self, study: str, top: int) -> Plain:
        """The best trials, and in words how sure it is that the first one is better."""
        with self._study(study) as (connection, head):
            ranked = best_trials(connection, head, top)
            at = seen_at(connection, head, ranked)
            rungs = study_trust(connection, head)
            gained = gained_by(connection, head)
        sure = [luck(ranked[0])] if ranked and head.has_best else []
        told = others(ranked) if head.has_best else ""
        sure += [line for line in (told, gained, trust.caveat(rungs)) if line]
        rows = [as_plain(head.name, each, at.get(each.trial.number), rungs) for each in ranked]
        return _plain({"trials": rows, "how_sure": sure})

    def trials(self, study: str, where: str | None, sort: str | None, limit: int) -> list[Plain]:
        """Trials of a study, selected and in order."""
        with self._study(study) as (connection, head):
            rows = trial_rows(connection, head, where=where, sort=sort, limit=limit)
        return [_plain(row.as_plain()) for row in rows]

    def trial(self, study: str, number: int) -> Plain:
        """Everything that is recorded about one trial."""
        with self._study(study) as (connection, head):
            detail = trial_detail(connection, head, number)
        return _plain(trial_as_plain(head.name, detail, logs_of(head, detail)))

    def compare(self, study: str, numbers: Sequence[int]) -> Plain:
        """What differs between trials, and their values at the levels that all of them reached."""
        with self._study(study) as (connection, head):
            details = [trial_detail(connection, head, number) for number in numbers]
        return _plain(comparison_as_plain(head.name, details))

    def report(self, study: str) -> str:
        """What happened in a study, as Markdown."""
        with self._study(study) as (connection, head):
            story = study_story(connection, head, time.time())
        return markdown_report(story)

    @contextmanager
    def _study(self, name: str) -> Iterator[tuple[Connection, StudyHead]]:
        with viewing(self._storage) as connection:
            yield connection, find_study(connection, name)


def _plain(value: Plain) -> Plain:
    plain: Plain = finite(value)
    return plain
