"""The list of studies, and a study's page: how it stands, and its report, both as they change."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from hpsearch.pages.addresses import study_in
from hpsearch.pages.forms import (
    EMPTY,
    Given,
    budget_fields,
    is_over,
    parameter_fields,
    spec_for_forms,
)
from hpsearch.pages.rendering import html
from hpsearch.report.sections import page
from hpsearch.report.story import study_story
from hpsearch.store.reading.queries import StudyHead, study_of_id
from hpsearch.store.reading.standing import (
    list_studies,
    recent_decisions,
    study_status,
)
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
        form_token: What the forms of the pages send; None if there are no forms.
    """

    def __init__(self, store: Store, form_token: str | None) -> None:
        self._store = store
        self._form_token = form_token
        self._reports = _Reports(store)
        self._making = asyncio.Lock()

    def all(self, request: Request) -> Response:
        """The list of studies, the newest first."""
        with self._store.reading() as connection:
            found = list_studies(connection)
        return html("studies", studies=found)

    def study(self, request: Request) -> Response:
        """The page of a study."""
        return self.page(study_in(request), asked=request.query_params.get("asked"))

    def page(
        self,
        number: int,
        *,
        asked: str | None = None,
        wrong: str | None = None,
        given: Given = EMPTY,
    ) -> Response:
        """The page of a study, also after one of its forms was sent.

        Args:
            number: The study's id.
            asked: The id of the request that was made of it.
            wrong: Why none was made.
            given: What stood in the form.
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
            limits=budget_fields(spec, given),
            parameters=parameter_fields(spec, {}, given),
            why=given.get("why", ""),
        )

    def now(self, request: Request) -> Response:
        """How a study stands, as a part of its page."""
        with self._store.reading() as connection:
            study = study_of_id(connection, study_in(request))
            values = _standing(connection, study)
        return html("study_now", **values)

    def revision(self, request: Request) -> Response:
        """What changes with every commit of a study."""
        return JSONResponse({"revision": self._store.revision(study_in(request))})

    async def report(self, request: Request) -> Response:
        """The report of a study, as a part of its page. One is made at a time; who waits for
        another one occupies no thread."""
        async with self._making:
            text = await run_in_threadpool(self._reports.of, study_in(request))
        return HTMLResponse(text, headers={"Cache-Control": "no-store"})


def _standing(connection: Connection, study: StudyHead) -> dict[str, Any]:
    """What the upper part of the page shows."""
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


class _Reports:
    """The reports of studies, each made once for a revision.

    Args:
        store: The database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._made: dict[int, tuple[int, str]] = {}

    def of(self, number: int) -> str:
        """The report of a study as it is now."""
        revision = self._store.revision(number)
        known = self._made.pop(number, None)
        if known is None or known[0] != revision:
            known = revision, self._make(number)
        self._made[number] = known
        while len(self._made) > MOST_REPORTS:
            del self._made[next(iter(self._made))]
        return known[1]

    def _make(self, number: int) -> str:
        with self._store.reading() as connection:
            study = study_of_id(connection, number)
            story = study_story(connection, study, time.time())
        text = html("study_report", page=page(story)).body
        return bytes(text).decode()
