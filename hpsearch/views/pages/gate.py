"""The gate before the dashboard, which checks the sender of each request.

The dashboard shows and changes whatever its database holds. The gate guards it against

* **other people on the network**: if there is a token, only those who know it get in. The link that
  `hpsearch dashboard` printed carries the token once and leaves a cookie behind; programs send
  `Authorization: Bearer TOKEN`.
* **names that point to this machine** (DNS rebinding): if evil.example suddenly means 127.0.0.1, a
  browser takes its pages for the dashboard's own. Without a token, only requests to a loopback name
  pass; with one, the browser keeps the cookie for the name it came from.
* **pages of other origins in the same browser** (cross-site request forgery): requests that change
  something must come from the dashboard's own pages. Headers of every response forbid other pages
  to read, include or frame it.
* **text that is run as a program** (cross-site scripting): a Content-Security-Policy allows only
  scripts that are files of the dashboard, whatever the names, errors and notes of a study hold.
* **changes that nobody allowed**: without ``--allow-changes``, it only answers requests that read.
"""

import hashlib
import hmac
import re
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "hpsearch-dashboard"
"""The beginning of the cookie's name; it ends with the port, so that each dashboard has its own."""
READING = ("GET", "HEAD", "OPTIONS")  # methods of requests that change nothing

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' "
        "'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Sent with every response that does not state another."""

_UNKNOWN = """\
This dashboard needs a token.

Open the link that `hpsearch dashboard` printed: copy all of it, including ?token=...,
into the browser's address bar.
Programs send the header  Authorization: Bearer TOKEN
"""
_NOT_LOOPBACK = """\
This dashboard only answers to the names 127.0.0.1, ::1 and localhost.

Open the link that `hpsearch dashboard` printed.
To serve other machines, run: hpsearch dashboard --host HOST
"""
_FOREIGN_ORIGIN = """\
This dashboard only accepts changes from its own pages: the request's Origin is not its Host.

A proxy in front of it must pass the Host header on unchanged.
"""
_ONLY_READS = """\
This dashboard only shows studies, and changes none.

To change them from its pages, start it with: hpsearch dashboard --allow-changes
"""

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<name>[^\s\[\]:@/?#,]+))(?::[0-9]*)?")


class Gate:
    """An ASGI application that passes permitted requests on to another one.

    Args:
        app: The application that is guarded.
        token: The token of every request; None lets in every request to a loopback name.
        allow_changes: True if requests may do more than read.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, allow_changes: bool) -> None:
        self._app = app
        self._token = None if token is None else token.encode("utf-8", "surrogateescape")
        self._allow_changes = allow_changes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with 303 to the link, 401 without the token, 403 to a foreign page and to changes
        that are not allowed, else as the app does. Only HTTP is accepted."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                stated = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    stated.setdefault(name, value)
            await send(message)

        respond = self._own_response(Request(scope)) or self._app
        await respond(scope, receive, with_headers)

    def _own_response(self, request: Request) -> Response | None:
        """The gate's own response; None if the request may pass."""
        token = self._token
        if token is None:
            if not _is_loopback(request.headers.get("host", "")):
                return _response(HTTPStatus.FORBIDDEN, _NOT_LOOPBACK)
        elif request.method in READING and _is_same(request.query_params.get("token", ""), token):
            return _let_in(request, token)
        elif not _is_known(request, token):
            return _response(HTTPStatus.UNAUTHORIZED, _UNKNOWN, {"WWW-Authenticate": "Bearer"})
        if request.method in READING:
            return None
        if _is_foreign(request.headers):
            return _response(HTTPStatus.FORBIDDEN, _FOREIGN_ORIGIN)
        return None if self._allow_changes else _response(HTTPStatus.FORBIDDEN, _ONLY_READS)


def _response(status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(text, status, {"Cache-Control": "no-store", **(headers or {})})


def _let_in(request: Request, token: bytes) -> Response:
    """Leave the cookie in the browser, and send it to the same page without the token."""
    # One slash in front: with two, the path would name another host.
    page = "/" + quote(request.scope["path"].lstrip("/"))
    fields = request.query_params.multi_items()
    rest = [(name, value) for name, value in fields if name != "token"]
    if rest:
        page += "?" + urlencode(rest, quote_via=quote)
    response = _response(HTTPStatus.SEE_OTHER, "", {"Location": page})
    name, value = _cookie(request, token)
    response.set_cookie(name, value, httponly=True, samesite="strict")
    return response


def _is_known(request: Request, token: bytes) -> bool:
    """True if a request has the cookie, or the token in its header."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and hmac.compare_digest(given.encode("latin-1"), token):
        return True
    name, value = _cookie(request, token)
    return _is_same(request.cookies.get(name, ""), value.encode())


def _is_same(given: str, expected: bytes) -> bool:
    """Compare two secrets, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected)


def _cookie(request: Request, token: bytes) -> tuple[str, str]:
    """The cookie's name and value: a digest of the token, of characters that cookies may have."""
    _, port = request.scope["server"]
    digest = hmac.new(token, b"hpsearch dashboard", hashlib.sha256).hexdigest()
    return f"{COOKIE}-{port}", digest


def _is_loopback(host: str) -> bool:
    """True if a Host header names the loopback: 127.0.0.0/8, ::1 or localhost, at any port."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match["ipv6"] or match["name"]
    try:
        return name.lower() == "localhost" or ip_address(name).is_loopback
    except ValueError:  # any other name
        return False


def _is_foreign(headers: Headers) -> bool:
    """True if a page of another origin sent a request, whose origin browsers name."""
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return True
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    # A proxy in front decides whether it is HTTPS.
    return origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}")
