"""The trials of a study: all of them, one in full, and several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hpsearch.errors import FilterError, UserError
from hpsearch.pages.forms import EMPTY, Form, PagesWithForms, number_in
from hpsearch.pages.rendering import html, page_tables
from hpsearch.report.charts.curves import side_by_side
from hpsearch.store.reading.best import details_again, goals_of
from hpsearch.store.reading.logs import logs_of
from hpsearch.store.reading.queries import (
    StudyHead,
    TrialDetail,
    study_of_id,
    trial_rows,
)
from hpsearch.terminal import trial as view
from hpsearch.terminal.comparison import comparison
from hpsearch.terminal.escapes import escaped
from trials.checkpoints import folders

ROWS = 100
"""Trials on a page of the list."""
MOST_COMPARED = 6
LOG_BYTES = 16_000
"""The most of the end of a log that is shown."""


class TrialPages(PagesWithForms):
    """The pages on trials."""

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
        return html(
            "trials",
            400 if wrong else 200,
            study=study,
            rows=rows[:ROWS],
            metrics=[goal.metric for goal in goals_of(study)],
            names=list(dict.fromkeys(name for row in rows for name in row.params)),
            where=where,
            sort=sort,
            page=page,
            has_more=len(rows) > ROWS,
            wrong=wrong,
        )

    def trial(self, request: Request) -> Response:
        """The page of a trial."""
        return self.page(request.path_params["study"], request.path_params["trial"])

    def page(
        self, study_number: int, number: int, *, wrong: str | None = None, form: Form = EMPTY
    ) -> Response:
        """The page of a trial, also after one of its forms was sent, with the reason why that made
        no request."""
        revision = self._store.revision(study_number)
        with self._store.reading() as connection:
            study = study_of_id(connection, study_number)
            values = _facts(connection, study, number)
        values |= self.form_values(study, values["detail"].trial.params, form, wrong)
        return html("trial", 400 if wrong else 200, **values, revision=revision)

    def now(self, request: Request) -> Response:
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


def _facts(connection: Connection, study: StudyHead, number: int) -> dict[str, Any]:
    detail = _detail(connection, study, number)
    logs = logs_of(study, detail)
    parts = view.trial(detail, None, None, logs[-1] if logs else None)
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
