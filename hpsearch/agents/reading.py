"""The tools that read: they answer as the commands print for programs, and no more than was asked
for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection

from hpsearch.documents.plain import finite
from hpsearch.documents.studies import status_document, study_document
from hpsearch.documents.trials import best_documents, comparison_document, trial_document
from hpsearch.report.data import report_data
from hpsearch.report.page import markdown_report
from hpsearch.result.comparison import MOST_COMPARED
from hpsearch.result.reading import study_result
from hpsearch.store.reading.best import details_again
from hpsearch.store.reading.queries import (
    LARGEST_NUMBER,
    StudyHead,
    find_study,
    trial_rows,
)
from hpsearch.store.reading.standing import list_studies, study_status
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.words.certainty import how_sure

Plain = dict[str, Any]

MOST_ROWS = 200
MOST_CHARACTERS = 2000
"""Of a study's name, and of the reason for a proposal."""

Study = Annotated[
    str,
    Field(
        max_length=MOST_CHARACTERS,
        description="The study's name, as the tool `studies` lists it.",
    ),
]
Number = Annotated[int, Field(ge=0, le=LARGEST_NUMBER, description="The number of a trial.")]


class Reader:
    """Reads the studies of one database; each call sees them as they are at that moment.

    Every public method is a tool: agents see its name, its docstring and its parameters. It raises
    a `HpsearchError` that says what is wrong and what to do.
    """

    def __init__(self, storage: str) -> None:
        self._storage = storage

    def studies(self) -> list[Plain]:
        """List all studies, the newest first: state, trials by state, best trial, compute time."""
        with self._viewing() as connection:
            return [_plain(study_document(each)) for each in list_studies(connection)]

    def status(self, study: Study) -> Plain:
        """The status of a study: budget, running trials, failures by cause, trust in its rungs."""
        with self._study(study) as (connection, head):
            status = study_status(connection, head)
            trust = study_trust(connection, head)
        return _plain(status_document(status, trust, status.checkpoint_bytes))

    def best(self, study: Study, top: Annotated[int, Field(ge=1, le=50)] = 5) -> Plain:
        """The best trials, best first, with `how_sure`: in words, whether the first is better than
        others and than the default settings, or may be luck."""
        with self._study(study) as (connection, head):
            result = study_result(connection, head, top)
        return _plain({"trials": best_documents(result, top), "how_sure": how_sure(result)})

    def trials(
        self,
        study: Study,
        where: Annotated[
            str | None,
            Field(description="Such as: learning_rate < 1e-4 and state = 'complete'"),
        ] = None,
        sort: Annotated[str | None, Field(description="Such as: value desc, learning_rate")] = None,
        limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 20,
    ) -> list[Plain]:
        """Trials of a study with their parameters, values and latest metrics."""
        with self._study(study) as (connection, head):
            rows = trial_rows(connection, head, where=where, sort=sort, limit=limit)
        return [_plain(row.as_plain()) for row in rows]

    def trial(self, study: Study, number: Number) -> Plain:
        """One trial: parameters, reports, attempts, decisions in words, findings, error, logs."""
        with self._study(study) as (connection, head):
            (detail,) = details_again(connection, head, [number])
        return _plain(trial_document(head, detail))

    def compare(
        self,
        study: Study,
        numbers: Annotated[list[Number], Field(min_length=2, max_length=MOST_COMPARED)],
    ) -> Plain:
        """Trials side by side: the parameters that differ, and values at the same resource."""
        with self._study(study) as (connection, head):
            details = details_again(connection, head, numbers)
        return _plain(comparison_document(head, details))

    def report(self, study: Study) -> str:
        """The report on a study, as Markdown: its result, budget, failures, environment."""
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
