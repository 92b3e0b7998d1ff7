"""The list of studies, and a study's page: its state, and its report, both as they change."""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hpsearch.pages.forms import (
    EMPTY,
    Form,
    budget_fields,
    is_over,
    parameter_fields,
    spec_for_forms,
)
from hpsearch.pages.rendering import html
from hpsearch.report.data import report_data
from hpsearch.report.page import page
from hpsearch.store.reading.queries import StudyHead, study_of_id
from hpsearch.store.reading.standing import list_studies, recent_decisions, study_status
from hpsearch.store.store import Store
from hpsearch.terminal import status as view
from hpsearch.terminal.panel import TELLING

MOST_DECISIONS = 8
MOST_REQUESTS = 8
MOST_REPORTS = 8
"""So many reports are kept, so that the next visitor need not wait for them."""


class StudyPages:
    """Answers with pages on studies.

    Args:
        store: The database.
        form_token: The token in the forms of the pages; None if there are no forms.
    """

    def __init__(self, store: Store, form_token: str | None) -> None:
        self._store = store
        self._form_token = form_token
        self._report_at = lru_cache(MOST_REPORTS)(self._make_report)
        self._making = asyncio.Lock()

    def all(self, request: Request) -> Response:
        """The list of studies, the newest first."""
        with self._store.reading() as connection:
            found = list_studies(connection)
        return html("studies", studies=found)

    def study(self, request: Request) -> Response:
        """The page of a study."""
        return self.page(request.path_params["study"], asked=request.query_params.get("asked"))

    def page(
        self,
        number: int,
        *,
        asked: str | None = None,
        wrong: str | None = None,
        form: Form = EMPTY,
    ) -> Response:
        """The page of a study, also after one of its forms was sent.

        Args:
            number: The study's id.
            asked: The id of the request that the form made.
            wrong: Why none was made.
            form: The values of the form.
        """
        revision = self._store.revision(number)  # read first: what comes later is seen as a change
        with self._store.reading() as connection:
            study = study_of_id(connection, number)
            values = _standing(connection, study)
        spec = spec_for_forms(self._store, study.name) if self._form_token else None
        return html(
            "study",
            400 if wrong else 200,
            **values,
            revision=revision,
            form_token=self._form_token,
            is_over=is_over(study),
            asked=asked,
            wrong=wrong,
            limits=budget_fields(spec, form),
            parameters=parameter_fields(spec, {}, form),
            why=form.get("why", ""),
        )

    def now(self, request: Request) -> Response:
        """The state of a study, as a part of its page."""
        with self._store.reading() as connection:
            study = study_of_id(connection, request.path_params["study"])
            values = _standing(connection, study)
        return html("study_now", **values)

    def revision(self, request: Request) -> Response:
        """The revision of a study, which every commit changes."""
        return JSONResponse({"revision": self._store.revision(request.path_params["study"])})

    async def report(self, request: Request) -> Response:
        """The report of a study, as a part of its page. One is made at a time; who waits for
        another one occupies no thread."""
        number = request.path_params["study"]
        async with self._making:
            revision = await run_in_threadpool(self._store.revision, number)
            return await run_in_threadpool(self._report_at, number, revision)

    def _make_report(self, number: int, revision: int) -> Response:
        """The report of a study at a revision."""
        with self._store.reading() as connection:
            study = study_of_id(connection, number)
            data = report_data(connection, study, time.time())
        return html("study_report", page=page(data))


def _standing(connection: Connection, study: StudyHead) -> dict[str, Any]:
    """The variables of the upper part of the page."""
    status = study_status(connection, study)
    decisions = recent_decisions(connection, study, TELLING, MOST_DECISIONS)
    facts = view.study_facts(status, time.time())
    barred = {limit.name for limit in status.budget if limit.most}
    left_out = ["study", "state", "trials", *(view.LABELS[name] for name in barred)]
    return {
        "study": study,
        "status": status,
        "state": facts["state"],
        "facts": {name: text for name, text in facts.items() if name not in left_out},
        "per_trial": None if study.budget is None else study.budget.per_trial,
        "decisions": decisions[::-1],
        "requests": status.requests[-MOST_REQUESTS:][::-1],
        "now": time.time(),
    }
