"""The pages: the list of studies, a study and its report as they change, its trials, one trial, and
several side by side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hpsearch.domain.records import StudyState
from hpsearch.errors import FilterError, UserError
from hpsearch.store.reading.best import details_again, goals_of
from hpsearch.store.reading.logs import logs_of
from hpsearch.store.reading.queries import StudyHead, TrialDetail, study_of_id, trial_rows
from hpsearch.store.reading.standing import list_studies, recent_decisions, study_status
from hpsearch.store.store import Store
from hpsearch.views.pages.forms import EMPTY, Form, fields_of, number_in
from hpsearch.views.pages.rendering import html, page_tables
from hpsearch.views.report.charts.progress import side_by_side
from hpsearch.views.report.data import report_data
from hpsearch.views.report.page import page
from hpsearch.views.report.rendering import ReportPage
from hpsearch.views.terminal import status as view
from hpsearch.views.terminal.escapes import escaped
from hpsearch.views.terminal.status import CHANGING
from hpsearch.views.terminal.trial import comparison
from hpsearch.views.terminal.trial import trial as trial_parts
from trials.checkpoints import folders

ROWS = 100
"""Trials on a page of the list."""
MOST_COMPARED = 6
LOG_BYTES = 16_000
"""The most of the end of a log that is shown."""
MOST_DECISIONS = 8
MOST_REQUESTS = 8
MOST_REPORTS = 8
"""The number of reports that are kept, so that the next visitor need not wait for them."""


class Pages:
    """The pages on the studies of a database and on their trials; without a `form_token` they have
    no forms."""

    def __init__(self, store: Store, form_token: str | None) -> None:
        self._store = store
        self._form_token = form_token
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
        self, number: int, *, asked: str | None = None, wrong: str | None = None, form: Form = EMPTY
    ) -> Response:
        """The page of the study with this id, also after one of its forms was sent, with the id of
        the request that it made, or why it made none (`wrong`)."""
        revision = self._store.revision(number)  # read first, so that later commits are changes
        with self._store.reading() as connection:
            study = study_of_id(connection, number)
            values = _standing(connection, study)
        values |= self._form_values(study, {}, form, wrong)
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

    def _form_values(
        self, study: StudyHead, params: Mapping[str, Any], form: Form, wrong: str | None
    ) -> dict[str, Any]:
        """The variables of the forms of a page: its fields begin with the values of `form`, and
        those of parameters otherwise with `params`."""
        record = self._store.find_study(study.name) if self._form_token else None
        values = fields_of(record, params, form)
        is_over = study.driver is None and study.state is StudyState.FINISHED
        return {**values, "form_token": self._form_token, "is_over": is_over, "wrong": wrong}

    def listing(self, request: Request) -> Response:
        """Trials of a study, selected and in order, a page at a time."""
        asked = request.query_params
        where, sort = asked.get("where", "").strip(), asked.get("sort", "").strip()
        page = number_in(asked.get("page", "0"))
        wrong, rows = None, []
        with self._store.reading() as connection:
            study = study_of_id(connection, request.path_params["study"])
            limits = {"limit": ROWS + 1, "skip": page * ROWS}
            try:
                rows = trial_rows(connection, study, where=where, sort=sort, **limits)
            except FilterError as error:
                wrong = error
        values = {
            "metrics": [goal.metric for goal in goals_of(study)],
            "names": list(dict.fromkeys(name for row in rows for name in row.params)),
            "has_more": len(rows) > ROWS,
        }
        chosen = {"where": where, "sort": sort, "page": page}
        code = 400 if wrong else 200
        return html("trials", code, study=study, rows=rows[:ROWS], wrong=wrong, **values, **chosen)

    def trial(self, request: Request) -> Response:
        """The page of a trial."""
        return self.trial_page(request.path_params["study"], request.path_params["trial"])

    def trial_page(
        self, study_number: int, number: int, *, wrong: str | None = None, form: Form = EMPTY
    ) -> Response:
        """The page of a trial, also after one of its forms was sent, with the reason why that made
        no request."""
        revision = self._store.revision(study_number)
        with self._store.reading() as connection:
            study = study_of_id(connection, study_number)
            values = _facts(connection, study, number)
        values |= self._form_values(study, values["detail"].trial.params, form, wrong)
        return html("trial", 400 if wrong else 200, **values, revision=revision)

    def trial_now(self, request: Request) -> Response:
        """The facts about a trial, as a part of its page."""
        with self._store.reading() as connection:
            study = study_of_id(connection, request.path_params["study"])
            values = _facts(connection, study, request.path_params["trial"])
        return html("trial_now", **values)

    def compare(self, request: Request) -> Response:
        """Trials side by side."""
        numbers = list(dict.fromkeys(map(number_in, request.query_params.getlist("trial"))))
        if not 2 <= len(numbers) <= MOST_COMPARED:
            raise HTTPException(400, f"choose 2 to {MOST_COMPARED} trials to compare")
        with self._store.reading() as connection:
            study = study_of_id(connection, request.path_params["study"])
            details = [_detail(connection, study, number) for number in numbers]
        return html(
            "compare",
            study=study,
            numbers=numbers,
            tables=page_tables(comparison(details, None), "What they are"),
            charts=side_by_side(details, goals_of(study), _unit(study)),
        )


def _standing(connection: Connection, study: StudyHead) -> dict[str, Any]:
    status = study_status(connection, study)
    decisions = recent_decisions(connection, study, CHANGING, MOST_DECISIONS)
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


def _facts(connection: Connection, study: StudyHead, number: int) -> dict[str, Any]:
    detail = _detail(connection, study, number)
    logs = logs_of(study, detail)
    parts = trial_parts(detail, None, None, logs[-1] if logs else None)
    return {
        "study": study,
        "detail": detail,
        "tables": page_tables(parts, f"Trial {number}"),
        "charts": side_by_side([detail], goals_of(study), _unit(study)),
        "log": _end_of(logs),
        "error": detail.trial.error_text,
    }


def _detail(connection: Connection, study: StudyHead, number: int) -> TrialDetail:
    try:
        (found,) = details_again(connection, study, [number])
        return found
    except UserError as error:
        raise HTTPException(404, str(error)) from None


def _end_of(logs: Sequence[str]) -> str | None:
    """The end of the latest log; None if this machine does not have it."""
    if not logs or folders.is_url(logs[-1]):
        return None
    try:
        with Path(logs[-1]).open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - LOG_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return None
    return escaped(text.replace("\r\n", "\n").replace("\r", "\n"))


def _unit(study: StudyHead) -> str:
    return "resource" if study.budget is None else study.budget.per_trial.unit.value
