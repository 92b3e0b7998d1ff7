"""Readings for agents: the same as the commands print for programs, and no more than was asked
for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from sqlalchemy import Connection

from hpsearch.documents.plain import finite
from hpsearch.documents.studies import status_document, study_document
from hpsearch.documents.trials import best_documents, comparison_document, trial_document
from hpsearch.report.data import report_data
from hpsearch.report.page import markdown_report
from hpsearch.result.reading import study_result
from hpsearch.store.reading.queries import StudyHead, find_study, trial_detail, trial_rows
from hpsearch.store.reading.standing import list_studies, study_status
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.words.certainty import how_sure

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
        with self._viewing() as connection:
            return [_plain(study_document(each)) for each in list_studies(connection)]

    def status(self, study: str) -> Plain:
        """The status of a study: budget, running trials, failures by cause, trust in its rungs."""
        with self._study(study) as (connection, head):
            status = study_status(connection, head)
            trust = study_trust(connection, head)
        return _plain(status_document(status, trust, status.checkpoint_bytes))

    def best(self, study: str, top: int) -> Plain:
        """The best trials, and in words how sure it is that the first one is better."""
        with self._study(study) as (connection, head):
            result = study_result(connection, head, top)
        return _plain({"trials": best_documents(result, top), "how_sure": how_sure(result)})

    def trials(self, study: str, where: str | None, sort: str | None, limit: int) -> list[Plain]:
        """Trials of a study, selected and in order."""
        with self._study(study) as (connection, head):
            rows = trial_rows(connection, head, where=where, sort=sort, limit=limit)
        return [_plain(row.as_plain()) for row in rows]

    def trial(self, study: str, number: int) -> Plain:
        """Everything that is recorded about one trial."""
        with self._study(study) as (connection, head):
            detail = trial_detail(connection, head, number)
        return _plain(trial_document(head, detail))

    def compare(self, study: str, numbers: Sequence[int]) -> Plain:
        """The parameters in which trials differ, and their values at the levels that they share."""
        with self._study(study) as (connection, head):
            details = [trial_detail(connection, head, number) for number in numbers]
        return _plain(comparison_document(head, details))

    def report(self, study: str) -> str:
        """The report of a study, as Markdown."""
        with self._study(study) as (connection, head):
            data = report_data(connection, head, time.time())
        return markdown_report(data)

    @contextmanager
    def _study(self, name: str) -> Iterator[tuple[Connection, StudyHead]]:
        with self._viewing() as connection:
            yield connection, find_study(connection, name)

    @contextmanager
    def _viewing(self) -> Iterator[Connection]:
        with closing(Store.open(self._storage, create=False)) as store, store.reading() as view:
            yield view


def _plain(value: Plain) -> Plain:
    plain: Plain = finite(value)
    return plain
