"""The dashboard as an application: the addresses of its pages, and the pages of errors."""

import secrets
from typing import Any

from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from hpsearch.errors import HpsearchError, StoreBusy, StudyHeld, StudyNotFound, Unreachable
from hpsearch.store.store import Store
from hpsearch.views.pages import changes
from hpsearch.views.pages.changes import ChangeForms
from hpsearch.views.pages.pages import Pages
from hpsearch.views.pages.rendering import html
from trials.settings import nearest

PATIENCE_S = 5.0  # seconds that a change waits for other writers of the database
STATIC: list[str | tuple[str, str]] = [
    ("hpsearch.views.report", "static"),
    ("hpsearch.views.pages", "static"),
    ("plotly", "package_data"),
]
"""The packages and folders of scripts and styles."""


class _Id(IntegerConvertor):
    """A number in an address that a database may hold."""

    regex = "[0-9]{1,9}"


register_url_convertor("id", _Id())


class _Page(Route):
    """A page that refuses what it does not read in an address: a filter under another name would
    select nothing. `many` may be given several times."""

    def __init__(self, path: str, endpoint: Any, *once: str, many: str | None = None) -> None:
        super().__init__(path, endpoint)
        self._once = {*once, "token"}  # an old one of the gate's
        self._many = many

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises HTTPException for one that has another field."""
        names = [name for name, _ in Request(scope).query_params.multi_items()]
        for name in names:
            if name == self._many:
                continue
            if name not in self._once:
                known = self._once - {"token"} | ({self._many} if self._many else set())
                hint = nearest(name, known) if known else "it takes none"
                raise HTTPException(400, f"this page takes no {name[:60]!r} in its address: {hint}")
            if names.count(name) > 1:
                raise HTTPException(400, f"the address has {name} twice")
        await super().handle(scope, receive, send)


def site_of(store: Store, *, allow_changes: bool, patience_s: float = PATIENCE_S) -> Starlette:
    """The application; with `allow_changes`, its pages have forms that change studies, where a
    change waits `patience_s` for other writers. The gate refuses requests."""
    form_token = secrets.token_urlsafe(32) if allow_changes else None
    pages = Pages(store, form_token)
    study = "/studies/{study:id}"
    trial = f"{study}/trials/{{trial:id}}"
    routes = [
        _Page("/", pages.all),
        _Page(study, pages.study, "asked"),
        _Page(f"{study}/revision", pages.revision),
        _Page(f"{study}/now", pages.now),
        _Page(f"{study}/report", pages.report, "details"),
        _Page(f"{study}/trials", pages.listing, "where", "sort", "page"),
        _Page(f"{study}/compare", pages.compare, many="trial"),
        _Page(trial, pages.trial),
        _Page(f"{trial}/now", pages.trial_now),
        Mount("/files", StaticFiles(packages=STATIC)),
    ]
    if form_token is not None:
        # A store of its own, so that no reader waits for a change.
        forms = ChangeForms(Store.unchecked(store.url, patience_s), form_token, pages)
        routes += [
            Route(f"{study}/stop", forms.endpoint(changes.stop_study), methods=["POST"]),
            Route(f"{study}/budget", forms.endpoint(changes.raise_budget), methods=["POST"]),
            Route(f"{study}/propose", forms.endpoint(changes.propose), methods=["POST"]),
            Route(f"{trial}/stop", forms.endpoint(changes.stop_trial), methods=["POST"]),
        ]
    handlers = {HpsearchError: _error_page, HTTPException: _http_error_page}
    return Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]


def _error_page(request: Request, error: HpsearchError) -> Response:
    code, title, hint = 400, "This cannot be shown", error.hint
    if isinstance(error, StudyNotFound):
        code, title = 404, "No such study"
    elif isinstance(error, StudyHeld):
        code = 409
    elif isinstance(error, StoreBusy):
        code, title = 503, "The database is busy"
        hint = "another program is writing to it, and nothing was changed: try again"
    elif isinstance(error, Unreachable):
        code, title = 503, "The database cannot be read"
    return html("error", code, title=title, message=error.message, hint=hint)


def _http_error_page(request: Request, error: HTTPException) -> Response:
    code, message = error.status_code, error.detail
    if message == "Not Found":
        message = f"the dashboard has no page {request.url.path}"
    title = "No such page" if code == 404 else "This cannot be shown"
    return html("error", code, title=title, message=message, hint=None)
