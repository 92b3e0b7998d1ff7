"""The dashboard as an application: which address leads to which page, and what the pages of
errors say.

Addresses of ours are `/`, `/studies/…` and `/files/…`. Optuna's dashboard keeps its own, which its
scripts name.
"""

from __future__ import annotations

import secrets

from a2wsgi import WSGIMiddleware
from optuna_dashboard import wsgi
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hpsearch.cli.dashboard.changes import Changing
from hpsearch.cli.dashboard.files import own_file
from hpsearch.cli.dashboard.gate import POLICY
from hpsearch.cli.dashboard.rendering import html
from hpsearch.cli.dashboard.study_pages import StudyPages
from hpsearch.cli.dashboard.trial_pages import TrialPages
from hpsearch.errors import HpsearchError, StudyNotFound, Unreachable, hearing
from hpsearch.optuna_storage.storage import StudyStorage
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


def site_of(store: Store, *, allow_changes: bool) -> Starlette:
    """The application.

    Args:
        store: The database.
        allow_changes: Whether its pages have forms that change studies. It refuses no request: the
            gate does.
    """
    form_token = secrets.token_urlsafe(32) if allow_changes else None
    studies = StudyPages(store, form_token)
    trials = TrialPages(store, form_token)
    one, trial = "/studies/{study:int}", "/studies/{study:int}/trials/{number:int}"
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
        changing = Changing(store, form_token, studies, trials)
        routes += [
            Route(f"{one}/stop", changing.stop_study, methods=["POST"]),
            Route(f"{one}/budget", changing.raise_budget, methods=["POST"]),
            Route(f"{one}/propose", changing.propose, methods=["POST"]),
            Route(f"{trial}/stop", changing.stop_trial, methods=["POST"]),
        ]
    optunas = _Optunas(WSGIMiddleware(wsgi(StudyStorage(store))))
    routes += [Route(path, optunas) for path in _OPTUNAS]
    handlers = {
        HpsearchError: _refused,
        HTTPException: _no_page,
    }
    return Starlette(
        routes=routes,
        middleware=[Middleware(_Hearing)],
        exception_handlers=handlers,  # type: ignore[arg-type]
    )


class _Hearing:
    """Lets each page say what could not be read for it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with hearing():
            await self._app(scope, receive, send)


class _Optunas:
    """Optuna's dashboard, with a policy that lets its own scripts run."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append(POLICY, _OPTUNAS_POLICY)
            await send(message)

        await self._app(scope, receive, with_policy)


# ------------------------------------------------------------------------------------------ errors


def _refused(request: Request, error: HpsearchError) -> Response:
    """What is wrong, and what to do."""
    code = 400
    if isinstance(error, StudyNotFound):
        code = 404
    elif isinstance(error, Unreachable):
        code = 503
    return html("error", code, title=_TITLES[code], message=error.message, hint=error.hint)


def _no_page(request: Request, error: HTTPException) -> Response:
    message, _, hint = error.detail.partition("\n")
    if message == "Not Found":
        message = f"the dashboard has no page {request.url.path}"
    title = "No such page" if error.status_code == 404 else _TITLES[400]
    return html("error", error.status_code, title=title, message=message, hint=hint.strip())


_TITLES = {
    400: "This cannot be shown",
    404: "No such study",
    503: "The database cannot be read",
}
