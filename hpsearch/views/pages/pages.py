"""The pages: the list of studies, a study and its report as they change, its trials, one trial, and
several side by side; the fields of their forms, and the values that these send."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hpsearch.domain.numbers import number
from hpsearch.domain.records import StudyRecord, StudyState
from hpsearch.errors import FilterError, HpsearchError, UserError
from hpsearch.running.creation.study import spec_of
from hpsearch.store.reading.attempts import logs_of
from hpsearch.store.reading.best import details_again, goals_of
from hpsearch.store.reading.queries import StudyHead, TrialDetail, study_of_id, trial_rows
from hpsearch.store.reading.status import list_studies, recent_decisions, study_status
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.parameters import CategoricalParameter, IntParameter, Parameter
from hpsearch.study_file.text import value_of
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
from trials.settings import as_scalar

Form = Mapping[str, str]  # the values of the fields of a form that was sent, by their names
EMPTY: Form = MappingProxyType({})
PARAMETER = "parameter:"  # the beginning of the name of a field for a parameter
LIMITS = {
    "trials": ("Trials", "a whole number"),
    "gpu_hours": ("GPU hours", "a number"),
    "cost": ("Cost", "a number"),
    "wall_clock": ("Wall clock", "such as 12h"),
}
"""The label and the kind of the field for each limit of a budget."""


@dataclass(frozen=True)
class FormField:
    """A field of a form."""

    name: str
    label: str
    value: str
    hint: str
    choices: Sequence[str] = ()  # the texts that can be chosen; empty for a field of free text


ROWS = 100  # trials on a page of the list
MOST_COMPARED = 6
LOG_BYTES = 16_000  # the most of the end of a log that is shown
MOST_DECISIONS = 8
MOST_REQUESTS = 8
MOST_REPORTS = 8
"""The number of reports that are kept, so that the next visitor need not wait for them."""


class Pages:
    """The pages on the studies of a database; without a `form_token` they have no forms."""

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
        return self.page(request.path_params["study"], asked=request.query_params.get("asked"))

    def page(
        self, number: int, *, asked: str | None = None, wrong: str | None = None, form: Form = EMPTY
    ) -> Response:
        """The page of the study with this id, also after one of its forms was sent, with the id of
        the request that it made, or why it made none (`wrong`)."""
        revision = self._store.revision(number)  # read first, so that later commits are changes
        with self._store.reading() as connection:
            study = study_of_id(connection, number)
            values = _study_values(connection, study)
        values |= self._form_values(study, {}, form, wrong)
        return html("study", 400 if wrong else 200, **values, revision=revision, asked=asked)

    def now(self, request: Request) -> Response:
        with self._store.reading() as connection:
            study = study_of_id(connection, request.path_params["study"])
            values = _study_values(connection, study)
        return html("study_now", **values)

    def revision(self, request: Request) -> Response:
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
        query = request.query_params
        where, sort = query.get("where", "").strip(), query.get("sort", "").strip()
        page = number_in(query.get("page", "0"))
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
        return self.trial_page(request.path_params["study"], request.path_params["trial"])

    def trial_page(
        self, study_number: int, number: int, *, wrong: str | None = None, form: Form = EMPTY
    ) -> Response:
        """The page of a trial, also after one of its forms was sent, with what was wrong."""
        revision = self._store.revision(study_number)
        with self._store.reading() as connection:
            study = study_of_id(connection, study_number)
            values = _trial_values(connection, study, number)
        values |= self._form_values(study, values["detail"].trial.params, form, wrong)
        return html("trial", 400 if wrong else 200, **values, revision=revision)

    def trial_now(self, request: Request) -> Response:
        with self._store.reading() as connection:
            study = study_of_id(connection, request.path_params["study"])
            values = _trial_values(connection, study, request.path_params["trial"])
        return html("trial_now", **values)

    def compare(self, request: Request) -> Response:
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


def _study_values(connection: Connection, study: StudyHead) -> dict[str, Any]:
    status = study_status(connection, study)
    decisions = recent_decisions(connection, study, CHANGING, MOST_DECISIONS)
    facts = view.study_facts(status, time.time())
    barred = {limit.name for limit in status.summary.budget if limit.most}
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


def _trial_values(connection: Connection, study: StudyHead, number: int) -> dict[str, Any]:
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


def fields_of(study: StudyRecord | None, params: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """The fields of the forms of a page, as `form` has them, or else `params`; none without a
    study whose file this version of the program can read."""
    spec = None
    if study is not None and study.spec:
        with suppress(HpsearchError):
            spec = spec_of(study)
    return {
        "limits": _budget_fields(spec, form),
        "parameters": _parameter_fields(spec, params, form),
        "why": form.get("why", ""),
    }


def number_in(text: str) -> int:
    """A whole number that a form or an address names. Raises HTTPException if it is not one."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise HTTPException(400, "trials and pages are named by whole numbers")
    return int(text)


def _budget_fields(spec: StudySpec | None, form: Form) -> list[FormField]:
    if spec is None:
        return []
    budget = spec.budget
    hours = None if budget.wall_clock_s is None else f"{number(budget.wall_clock_s / 3600)} h"
    most = {
        "trials": budget.trials,
        "gpu_hours": budget.gpu_hours,
        "cost": budget.cost,
        "wall_clock": hours,
    }
    fields = []
    for name, limit in most.items():
        if limit is not None:
            label, kind = LIMITS[name]
            hint = f"{kind}, more than {limit if isinstance(limit, str) else number(limit)}"
            fields.append(FormField(name, label, form.get(name, ""), hint))
    return fields


def limits_of(form: Form) -> dict[str, Any]:
    """The new limits in a form; those that were left empty stay as they are."""
    given = {name: form.get(name, "").strip() for name in LIMITS}
    return {name: value_of(text) for name, text in given.items() if text}


def _parameter_fields(
    spec: StudySpec | None, params: Mapping[str, Any], form: Form
) -> list[FormField]:
    fields = []
    for name, parameter in ({} if spec is None else spec.space).items():
        sent, hint, choices = PARAMETER + name, "", list[str]()
        if isinstance(parameter, CategoricalParameter):
            choices = [_text(choice) for choice in parameter.choices]
        else:
            kind = "whole number, " if isinstance(parameter, IntParameter) else ""
            hint = f"{kind}{number(parameter.low)} to {number(parameter.high)}"
        begins = _text(params[name]) if name in params else ""
        fields.append(FormField(sent, name, form.get(sent, begins), hint, choices))
    return fields


def params_of(spec: StudySpec, form: Form) -> dict[str, Any]:
    """The configuration in a form; parameters that were left empty are not in it."""
    given = {name: form.get(PARAMETER + name, "").strip() for name in spec.space}
    return {name: _value(spec.space[name], text) for name, text in given.items() if text}


def _value(parameter: Parameter, text: str) -> Any:
    if not isinstance(parameter, CategoricalParameter):
        return value_of(text)
    choices = {_text(choice): choice for choice in parameter.choices}
    return choices.get(text, text)


def _text(value: Any) -> str:
    return "null" if value is None else str(as_scalar(value))
