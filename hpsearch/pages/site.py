"""The dashboard as an application: which address leads to which page, and what the pages of
errors say.

Addresses of ours are `/`, `/studies/…` and `/files/…`. Optuna's dashboard keeps its own, which its
scripts name.
"""

from __future__ import annotations

import functools
import re
import secrets
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from a2wsgi import WSGIMiddleware
from bottle import HTTPError
from optuna.storages import BaseStorage
from optuna_dashboard import wsgi
from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from hpsearch.bridges.optuna.storage import StudyStorage
from hpsearch.errors import (
    HpsearchError,
    StoreBusy,
    StudyHeld,
    StudyNotFound,
    Unreachable,
)
from hpsearch.pages.addresses import number_in
from hpsearch.pages.changes import Changing
from hpsearch.pages.files import own_file
from hpsearch.pages.gate import POLICY, READING
from hpsearch.pages.rendering import html
from hpsearch.pages.study_pages import StudyPages
from hpsearch.pages.taking import PATIENCE_S, Bodies, ChangeTurns
from hpsearch.pages.trial_pages import TrialPages
from hpsearch.store.store import Store

_OPTUNAS = (
    *("/dashboard", "/dashboard/{rest:path}", "/api/{rest:path}", "/static/{rest:path}"),
    *("/csv/{rest:path}", "/artifacts/{rest:path}", "/favicon.ico"),
)
_OPTUNAS_POLICY = (
    # Plotly makes the WebGL programs of Optuna's charts with eval, without users' text.
    "default-src 'self'; script-src 'self' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline' data:; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_NO_ID = re.compile(r"/-?\d{19,}(/|$)")
"""A number in an address that no database holds."""

P = ParamSpec("P")
T = TypeVar("T")


def site_of(store: Store, *, allow_changes: bool, patience_s: float = PATIENCE_S) -> Starlette:
    """The application.

    Args:
        store: The database.
        patience_s: How long a change waits for its turn, and then for other writers, in seconds.
        allow_changes: Whether its pages have forms that change studies. It refuses no request: the
            gate does.
    """
    form_token = secrets.token_urlsafe(32) if allow_changes else None
    changed = Store.unchecked(store.url, patience_s)
    turns = ChangeTurns(patience_s)
    studies = StudyPages(store, form_token)
    trials = TrialPages(store, form_token)
    one = "/studies/{study:short}"
    trial = f"{one}/trials/{{number:short}}"
    routes = [
        Route("/", studies.all),
        Route(one, studies.study),
        Route(f"{one}/revision", studies.revision),
        Route(f"{one}/now", studies.now),
        Route(f"{one}/report", studies.report),
        Route(f"{one}/trials", trials.listing),
        Route(f"{one}/compare", trials.compare),
        Route(trial, trials.trial),
        Route(f"{trial}/now", trials.now),
        Route("/files/{digest}/{name}", own_file),
    ]
    if form_token is not None:
        changing = Changing(changed, turns, form_token, studies, trials)
        routes += [
            Route(f"{one}/stop", changing.stop_study, methods=["POST"]),
            Route(f"{one}/budget", changing.raise_budget, methods=["POST"]),
            Route(f"{one}/propose", changing.propose, methods=["POST"]),
            Route(f"{trial}/stop", changing.stop_trial, methods=["POST"]),
        ]
    optunas = _Optunas(store, changed, turns)
    routes += [Route(path, optunas) for path in _OPTUNAS]
    handlers = {
        HpsearchError: _refused,
        HTTPException: _no_page,
    }
    return Starlette(
        routes=routes,
        middleware=[Middleware(Bodies)],
        exception_handlers=handlers,  # type: ignore[arg-type]
    )


class _Short(IntegerConvertor):
    """A number in an address that a database may hold."""

    regex = "[0-9]{1,10}"


register_url_convertor("short", _Short())


class _Optunas:
    """Optuna's dashboard, with a policy that lets its own scripts run.

    Changes have a storage of their own, so that no reader waits while one of them does. An answer
    is sent once it is whole: a slow client occupies none of Optuna's threads.

    Args:
        store: What is read.
        changed: The same database, for changes.
        turns: In which changes are made.
    """

    def __init__(self, store: Store, changed: Store, turns: ChangeTurns) -> None:
        self._reading = WSGIMiddleware(wsgi(_Explaining(store)))
        self._changing = WSGIMiddleware(wsgi(_Explaining(changed)))
        self._changed = changed
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: list[Message] = []

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append(POLICY, _OPTUNAS_POLICY)
            answer.append(message)

        _refuse_odd(Request(scope))
        if scope["method"] in READING:
            await self._reading(scope, receive, collect)
        else:
            async with self._turns.one():
                await self._changing(scope, receive, collect)
                self._changed.close()
        for message in answer:
            await send(message)


def _refuse_odd(request: Request) -> None:
    """Refuse numbers that Optuna's dashboard would fail at.

    Raises:
        HTTPException: There is one.
    """
    if _NO_ID.search(request.url.path):
        raise HTTPException(404)
    if "after" in request.query_params:
        number_in(request.query_params["after"])


class _Explaining(StudyStorage):
    """A storage whose errors Optuna's pages show, in place of `internal server error`."""


def _explained(call: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(call)
    def explain(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except HpsearchError as error:
            raise HTTPError(_code_of(error), str(error)) from error

    return explain


for _name in BaseStorage.__abstractmethods__:
    setattr(_Explaining, _name, _explained(getattr(StudyStorage, _name)))
_Explaining.__abstractmethods__ = frozenset()


# ------------------------------------------------------------------------------------------ errors


def _refused(request: Request, error: HpsearchError) -> Response:
    """What is wrong, and what to do."""
    code, title = _code_of(error), _TITLES.get(_code_of(error), _TITLES[400])
    message, hint = error.message, error.hint
    if isinstance(error, StoreBusy):
        title, hint = "The database is busy", _BUSY
    return html("error", code, title=title, message=message, hint=hint)


def _code_of(error: HpsearchError) -> int:
    """The status of an answer that says what is wrong."""
    if isinstance(error, StudyNotFound):
        return 404
    if isinstance(error, StudyHeld):
        return 409
    return 503 if isinstance(error, Unreachable) else 400


def _no_page(request: Request, error: HTTPException) -> Response:
    message, _, hint = error.detail.partition("\n")
    if message == "Not Found":
        message = f"the dashboard has no page {request.url.path}"
    title = "No such page" if error.status_code == 404 else _TITLES[400]
    return html("error", error.status_code, title=title, message=message, hint=hint.strip())


_BUSY = "another program is writing to it, and nothing was changed: try again"
_TITLES = {
    400: "This cannot be shown",
    404: "No such study",
    503: "The database cannot be read",
}
