"""The requests that forms make to studies: each is a row of a table, for the study's driver."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from contextlib import closing

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hpsearch.domain.facts import RequestKind
from hpsearch.errors import StudyNotFound, UserError
from hpsearch.running.creation.study import spec_of
from hpsearch.running.study_run.requests import send
from hpsearch.store.reading.queries import StudyHead, study_of_id
from hpsearch.store.store import Store
from hpsearch.study_file.space import contains
from hpsearch.views.pages.pages import Form, Pages, limits_of, number_in, params_of

MOST_BYTES = 1 << 20  # the largest form

Change = Callable[[Store, Request, StudyHead, Form], int | None]
"""Makes a request to a study, and returns its id; None for a stop of the whole study."""


class ChangeForms:
    """Takes the forms of our own pages, which carry a token, one at a time.

    The pages of studies and trials are shown again where something was wrong.
    """

    def __init__(self, store: Store, form_token: str, pages: Pages) -> None:
        self._store = store
        self._form_token = form_token
        self._pages = pages
        self._one_at_a_time = asyncio.Lock()

    def endpoint(self, change: Change) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of a form: leads back to the study's page, or shows that of the form."""

        async def respond(request: Request) -> Response:
            form = await self._form(request)
            try:
                async with self._one_at_a_time:
                    made = await run_in_threadpool(self._changed, request, change, form)
            except StudyNotFound:
                raise
            except UserError as error:
                return await run_in_threadpool(self._page_again, request, str(error), form)
            study = request.path_params["study"]
            query = "stop" if made is None else str(made)
            return RedirectResponse(f"/studies/{study}?asked={query}", 303)

        return respond

    async def _form(self, request: Request) -> dict[str, str]:
        """The fields of a form of our own pages. Raises HTTPException for any other."""
        if int(request.headers.get("content-length", 0)) > MOST_BYTES:
            raise HTTPException(413, f"a form may have at most {MOST_BYTES} bytes")
        sent = await request.form()
        form = {name: value for name, value in sent.items() if isinstance(value, str)}
        token = form.pop("form_token", "").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(token, self._form_token.encode()):
            message = "This form is of an earlier start of the dashboard: load its page again"
            raise HTTPException(403, message)
        return form

    def _changed(self, request: Request, change: Change, form: Form) -> int | None:
        with closing(self._store):
            with self._store.reading() as connection:
                study = study_of_id(connection, request.path_params["study"])
            return change(self._store, request, study, form)

    def _page_again(self, request: Request, wrong: str, form: Form) -> Response:
        study = request.path_params["study"]
        trial = request.path_params.get("trial")
        if trial is None and form.get("like"):
            trial = number_in(form["like"])
        if trial is not None:
            return self._pages.trial_page(study, trial, wrong=wrong, form=form)
        return self._pages.page(study, wrong=wrong, form=form)


def stop_study(store: Store, request: Request, study: StudyHead, form: Form) -> None:
    if study.driver is None:
        raise UserError(f"nobody drives study {study.name}: there is nothing to stop")
    store.request_stop(study.name, _origin(request))


def raise_budget(store: Store, request: Request, study: StudyHead, form: Form) -> int:
    limits = limits_of(form)
    if not limits:
        raise UserError("no limit is given")
    return send(store, study.name, RequestKind.BUDGET, limits, _origin(request))[0]


def propose(store: Store, request: Request, study: StudyHead, form: Form) -> int:
    spec = spec_of(store.find_study(study.name))
    params = params_of(spec, form)
    if not params:
        raise UserError("no parameter is given")
    problems = contains(spec, params)
    if problems:
        raise UserError("; ".join(problems))
    content = {"params": params, "why": form.get("why", "").strip()}
    return send(store, study.name, RequestKind.PROPOSE, content, _origin(request))[0]


def stop_trial(store: Store, request: Request, study: StudyHead, form: Form) -> int:
    content = {"trial": request.path_params["trial"]}
    return send(store, study.name, RequestKind.STOP, content, _origin(request))[0]


def _origin(request: Request) -> str:
    return "dashboard" if request.client is None else f"dashboard at {request.client.host}"
