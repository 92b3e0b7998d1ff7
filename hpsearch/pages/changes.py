"""What the forms of the pages ask of studies: each becomes a row of the table of requests, which
the study's driver sees to."""

from __future__ import annotations

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
from hpsearch.pages.addresses import number_in, study_in, trial_in
from hpsearch.pages.forms import Given, limits_of, params_of
from hpsearch.pages.study_pages import StudyPages
from hpsearch.pages.taking import ChangeTurns
from hpsearch.pages.trial_pages import TrialPages
from hpsearch.store.reading.queries import StudyHead, study_of_id
from hpsearch.store.store import Store
from hpsearch.study_file.space import contains, is_open
from hpsearch.study_run.requests import place

_Act = Callable[[Request, StudyHead, Given], int | None]
"""Asks something of a study; the id of the request, None for a stop of the whole study."""


class Changing:
    """Answers forms.

    Args:
        store: The database, with little patience for other writers.
        turns: In which changes are made.
        form_token: What forms of our own pages send.
        studies: The pages that are shown again where something was wrong.
        trials: The pages of trials.
    """

    def __init__(
        self,
        store: Store,
        turns: ChangeTurns,
        form_token: str,
        studies: StudyPages,
        trials: TrialPages,
    ) -> None:
        self._store = store
        self._turns = turns
        self._form_token = form_token
        self._studies = studies
        self._trials = trials

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

    async def _answer(self, request: Request, act: _Act) -> Response:
        """Do it and lead back to the study's page, or show the page of the form again."""
        given = await self._form(request)
        try:
            async with self._turns.one():
                asked = await run_in_threadpool(self._done, request, act, given)
        except StudyNotFound:
            raise
        except UserError as error:
            return await run_in_threadpool(self._again, request, str(error), given)
        query = "stop" if asked is None else str(asked)
        return RedirectResponse(f"/studies/{study_in(request)}?asked={query}", 303)

    async def _form(self, request: Request) -> dict[str, str]:
        """What stands in a form of ours.

        Raises:
            HTTPException: It is not of our own pages.
        """
        form = await request.form()
        given = {name: value for name, value in form.items() if isinstance(value, str)}
        token = given.pop("form_token", "").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(token, self._form_token.encode()):
            message = "This form is of an earlier start of the dashboard: load its page again"
            raise HTTPException(403, message)
        return given

    def _done(self, request: Request, act: _Act, given: Given) -> int | None:
        with closing(self._store):
            with self._store.reading() as connection:
                study = study_of_id(connection, study_in(request))
            return act(request, study, given)

    def _again(self, request: Request, wrong: str, given: Given) -> Response:
        """The page that a form was on, with what is wrong."""
        study = study_in(request)
        trial = request.path_params.get("number")
        if trial is None and given.get("like"):
            trial = number_in(given["like"])
        if trial is not None:
            return self._trials.page(study, trial, wrong=wrong, given=given)
        return self._studies.page(study, wrong=wrong, given=given)

    def _stop_study(self, request: Request, study: StudyHead, given: Given) -> None:
        if study.driver is None:
            raise UserError(f"nobody drives study {study.name}: there is nothing to stop")
        self._store.request_stop(study.name, _origin(request))

    def _raise_budget(self, request: Request, study: StudyHead, given: Given) -> int:
        limits = limits_of(given)
        if not limits:
            raise UserError("no limit is given")
        return self._place(request, study.name, RequestKind.BUDGET, limits)

    def _propose(self, request: Request, study: StudyHead, given: Given) -> int:
        spec = spec_of(self._store.find_study(study.name))
        params = params_of(spec, given)
        if not params:
            raise UserError("no parameter is given")
        problems = contains(spec.space, params, is_open=is_open(spec.task))
        if problems:
            raise UserError("; ".join(problems))
        content: dict[str, Any] = {"params": params, "why": given.get("why", "").strip()}
        if "checkpoint" in given:
            content["checkpoint"] = number_in(given.get("like", ""))
        return self._place(request, study.name, RequestKind.PROPOSE, content)

    def _stop_trial(self, request: Request, study: StudyHead, given: Given) -> int:
        content = {"trial": trial_in(request)}
        return self._place(request, study.name, RequestKind.STOP, content)

    def _place(
        self, request: Request, name: str, kind: RequestKind, content: dict[str, Any]
    ) -> int:
        number, _ = place(self._store, name, kind, content, _origin(request))
        return number


def _origin(request: Request) -> str:
    """Where a request comes from, for people."""
    return "dashboard" if request.client is None else f"dashboard at {request.client.host}"
