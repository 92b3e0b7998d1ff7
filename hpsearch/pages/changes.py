"""The changes that forms ask of studies: each becomes a row of the table of requests, which the
study's driver carries out."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from contextlib import closing
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hpsearch.creation.study import spec_of
from hpsearch.domain.facts import RequestKind
from hpsearch.errors import StudyNotFound, UserError
from hpsearch.pages.forms import Form, limits_of, number_in, params_of
from hpsearch.pages.study_pages import StudyPages
from hpsearch.pages.trial_pages import TrialPages
from hpsearch.store.reading.queries import StudyHead, study_of_id
from hpsearch.store.store import Store
from hpsearch.study_file.space import contains, is_open
from hpsearch.study_run.requests import place

MOST_BYTES = 1 << 20
"""Of a form."""

_Change = Callable[[Request, StudyHead, Form], int | None]
"""Asks something of a study; the id of the request, None for a stop of the whole study."""


class ChangeForms:
    """Answers forms, one at a time.

    Args:
        store: The database, with little patience for other writers.
        form_token: The token in the forms of our own pages.
        studies: The pages that are shown again where something was wrong.
        trials: The pages of trials.
    """

    def __init__(
        self, store: Store, form_token: str, studies: StudyPages, trials: TrialPages
    ) -> None:
        self._store = store
        self._form_token = form_token
        self._studies = studies
        self._trials = trials
        self._turn = asyncio.Lock()

    async def stop_study(self, request: Request) -> Response:
        """Ask the driver of a study to save everything and to end."""
        return await self._answer(request, self._stop_study)

    async def raise_budget(self, request: Request) -> Response:
        """Ask for higher limits."""
        return await self._answer(request, self._raise_budget)

    async def propose(self, request: Request) -> Response:
        """Ask for a configuration to be tried next."""
        return await self._answer(request, self._propose)

    async def stop_trial(self, request: Request) -> Response:
        """Ask for the end of one trial."""
        return await self._answer(request, self._stop_trial)

    async def _answer(self, request: Request, change: _Change) -> Response:
        """Make the change and lead back to the study's page, or show the page of the form again."""
        form = await self._form(request)
        try:
            async with self._turn:
                asked = await run_in_threadpool(self._changed, request, change, form)
        except StudyNotFound:
            raise
        except UserError as error:
            return await run_in_threadpool(self._page_again, request, str(error), form)
        study = request.path_params["study"]
        query = "stop" if asked is None else str(asked)
        return RedirectResponse(f"/studies/{study}?asked={query}", 303)

    async def _form(self, request: Request) -> dict[str, str]:
        """The fields of a form of our own pages.

        Raises:
            HTTPException: It is not of our own pages, or too large.
        """
        if int(request.headers.get("content-length", 0)) > MOST_BYTES:
            raise HTTPException(413, f"a form may have at most {MOST_BYTES} bytes")
        sent = await request.form()
        form = {name: value for name, value in sent.items() if isinstance(value, str)}
        token = form.pop("form_token", "").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(token, self._form_token.encode()):
            message = "This form is of an earlier start of the dashboard: load its page again"
            raise HTTPException(403, message)
        return form

    def _changed(self, request: Request, change: _Change, form: Form) -> int | None:
        with closing(self._store):
            with self._store.reading() as connection:
                study = study_of_id(connection, request.path_params["study"])
            return change(request, study, form)

    def _page_again(self, request: Request, wrong: str, form: Form) -> Response:
        """The page that a form was on, with what is wrong."""
        study = request.path_params["study"]
        trial = request.path_params.get("trial")
        if trial is None and form.get("like"):
            trial = number_in(form["like"])
        if trial is not None:
            return self._trials.page(study, trial, wrong=wrong, form=form)
        return self._studies.page(study, wrong=wrong, form=form)

    def _stop_study(self, request: Request, study: StudyHead, form: Form) -> None:
        if study.driver is None:
            raise UserError(f"nobody drives study {study.name}: there is nothing to stop")
        self._store.request_stop(study.name, _origin(request))

    def _raise_budget(self, request: Request, study: StudyHead, form: Form) -> int:
        limits = limits_of(form)
        if not limits:
            raise UserError("no limit is given")
        return self._place(request, study.name, RequestKind.BUDGET, limits)

    def _propose(self, request: Request, study: StudyHead, form: Form) -> int:
        spec = spec_of(self._store.find_study(study.name))
        params = params_of(spec, form)
        if not params:
            raise UserError("no parameter is given")
        problems = contains(spec.space, params, is_open=is_open(spec.task))
        if problems:
            raise UserError("; ".join(problems))
        content: dict[str, Any] = {"params": params, "why": form.get("why", "").strip()}
        if "checkpoint" in form:
            content["checkpoint"] = number_in(form.get("like", ""))
        return self._place(request, study.name, RequestKind.PROPOSE, content)

    def _stop_trial(self, request: Request, study: StudyHead, form: Form) -> int:
        content = {"trial": request.path_params["trial"]}
        return self._place(request, study.name, RequestKind.STOP, content)

    def _place(
        self, request: Request, name: str, kind: RequestKind, content: dict[str, Any]
    ) -> int:
        number, _ = place(self._store, name, kind, content, _origin(request))
        return number


def _origin(request: Request) -> str:
    """The sender of a request, for people."""
    return "dashboard" if request.client is None else f"dashboard at {request.client.host}"
