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

from hpsearch.pages.forms import EMPTY, Form, PagesWithForms
from hpsearch.pages.rendering import html
from hpsearch.report.data import report_data
from hpsearch.report.page import page
from hpsearch.report.wording import ReportPage
from hpsearch.store.reading.queries import StudyHead, study_of_id
from hpsearch.store.reading.standing import list_studies, recent_decisions, study_status
from hpsearch.store.store import Store
from hpsearch.terminal import status as view
from hpsearch.terminal.panel import TELLING

MOST_DECISIONS = 8
MOST_REQUESTS = 8
MOST_REPORTS = 8
"""The number of reports that are kept, so that the next visitor need not wait for them."""


class StudyPages(PagesWithForms):
    """The pages on studies."""

    def __init__(self, store: Store, form_token: str | None) -> None:
        super().__init__(store, form_token)
        self._page_at = lru_cache(MOST_REPORTS)(self._make_page)
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
        """The page of the study with this id, also after one of its forms was sent, with the id of
        the request that it made, or why it made none (`wrong`)."""
        revision = self._store.revision(number)  # read first, so that later commits are changes
        with self._store.reading() as connection:
            study = study_of_id(connection, number)
            values = _standing(connection, study)
        values |= self.form_values(study, {}, form, wrong)
        return html("study", 400 if wrong else 200, **values, revision=revision, asked=asked)

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
        """The report of a study, as a part of its page: the result with its pictures, or with
        ``?details`` the rest. One report is made at a time, and no thread waits for it."""
        number = request.path_params["study"]
        async with self._making:
            revision = await run_in_threadpool(self._store.revision, number)
            made = await run_in_threadpool(self._page_at, number, revision)
        template = "study_details" if "details" in request.query_params else "study_report"
        return await run_in_threadpool(html, template, page=made)

    def _make_page(self, number: int, revision: int) -> ReportPage:
        with self._store.reading() as connection:
            study = study_of_id(connection, number)
            data = report_data(connection, study, time.time(), self._store.command)
        return page(data)


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
