"""The gate before the dashboard: who may send it requests, and from which pages.

The dashboard shows and changes whatever its database holds. The gate guards it against

* **other people on the network**: if there is a token, only those who know it get in. The link that
  `hpsearch dashboard` printed carries the token once and leaves a cookie behind; programs send
  `Authorization: Bearer TOKEN`.
* **names that point to this machine** (DNS rebinding): if evil.example suddenly means 127.0.0.1, a
  browser takes its pages for the dashboard's own. Without a token, only requests to a loopback name
  are answered; with one, the browser keeps the cookie for the name it came from.
* **pages of other origins in the same browser** (cross-site request forgery): requests that change
  something must come from the dashboard's own pages. Headers of every answer forbid other pages to
  read, include or frame it.
* **text that is run as a program** (cross-site scripting): a Content-Security-Policy allows only
  scripts that are files of the dashboard, whatever the names, errors and notes of a study hold.
* **changes that nobody allowed**: without ``--allow-changes``, it only answers requests that read.

It does not encrypt: over HTTP, anyone who can read the traffic can read the token. Without a token,
other users of this machine are let in on loopback, to read. And cookies do not depend on the port:
browsers show them to every server of the same host name that they visit.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import quote, unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "hpsearch-dashboard"
"""How the cookie's name begins; it ends with the port, so that each dashboard has its own."""

POLICY = "Content-Security-Policy"

READING = ("GET", "HEAD", "OPTIONS")
"""Methods of requests that change nothing."""

_HEADERS = {
    POLICY: (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' "
        "'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Sent with every answer that does not state another."""

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
    """An ASGI application that passes permitted requests on to another one; see the module's text.

    Args:
        app: What is guarded.
        token: What every request must present; None lets in every request to a loopback name.
        allow_changes: Whether requests may do more than read.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, allow_changes: bool) -> None:
        self._app = app
        self._token = None if token is None else token.encode("utf-8", "surrogateescape")
        self._allow_changes = allow_changes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        303 to the link, 401 without the token, 403 to a foreign page and to changes that are not
        allowed, else what the app answers. Connections that are not HTTP are not accepted.
        """
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                stated = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    stated.setdefault(name, value)
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The gate's own answer; None if the request may pass."""
        headers = Headers(scope=scope)
        token = self._token
        if token is None:
            if not _names_loopback(headers.get("host", "")):
                return _answer(HTTPStatus.FORBIDDEN, _NOT_LOOPBACK)
        elif _follows_link(scope, token):
            return _let_in(scope, token)
        elif not _known(scope, headers, token):
            return _answer(HTTPStatus.UNAUTHORIZED, _UNKNOWN, {"WWW-Authenticate": "Bearer"})
        if scope["method"] in READING:
            return None
        if _from_elsewhere(headers):
            return _answer(HTTPStatus.FORBIDDEN, _FOREIGN_ORIGIN)
        return None if self._allow_changes else _answer(HTTPStatus.FORBIDDEN, _ONLY_READS)


# ----------------------------------------------------------------------------------------- answers


def _answer(status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> Response:
    """Answer with a text of the gate."""
    return PlainTextResponse(text, status, {"Cache-Control": "no-store", **(headers or {})})


def _let_in(scope: Scope, token: bytes) -> Response:
    """Leave the cookie in the browser, and send it to the same page without the token in its
    address."""
    # One slash in front: with two, the path would name another host.
    page = "/" + quote(scope["path"].lstrip("/"), errors="surrogateescape")
    fields = scope["query_string"].decode("latin-1").split("&")
    rest = "&".join(field for field in fields if not field.startswith("token="))
    if rest:
        page += "?" + quote(rest, safe="!$%&'()*+,-./:;=?@_~", encoding="latin-1")
    cookie = f"{_cookie_name(scope)}={_cookie_value(token)}; HttpOnly; SameSite=Strict; Path=/"
    return _answer(HTTPStatus.SEE_OTHER, "", {"Location": page, "Set-Cookie": cookie})


# ---------------------------------------------------------------------------------------- requests


def _follows_link(scope: Scope, token: bytes) -> bool:
    """Whether a request asks for a page, with the token in its address."""
    asks_for_page = scope["method"] in ("GET", "HEAD")
    return asks_for_page and _same(_token_of_link(scope), token)


def _known(scope: Scope, headers: Headers, token: bytes) -> bool:
    """Whether a request has the cookie, or the token in its header."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and _same(given.encode("latin-1"), token):
        return True
    wanted_name = _cookie_name(scope)
    wanted_value = _cookie_value(token).encode()
    for cookie in "; ".join(headers.getlist("cookie")).split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == wanted_name and _same(value.encode("latin-1"), wanted_value):
            return True
    return False


def _token_of_link(scope: Scope) -> bytes | None:
    """The token in a request's address, if there is one."""
    for field in scope["query_string"].split(b"&"):
        name, _, value = field.partition(b"=")
        if name == b"token":
            return unquote_to_bytes(value)
    return None


def _same(given: bytes | None, expected: bytes) -> bool:
    """Whether two secrets are the same, in a time that does not depend on where they differ."""
    return given is not None and hmac.compare_digest(given, expected)


def _cookie_name(scope: Scope) -> str:
    _, port = scope["server"]
    return f"{COOKIE}-{port}"


def _cookie_value(token: bytes) -> str:
    """The cookie's value: a digest of the token, whose characters cookies may have."""
    return hmac.new(token, b"hpsearch dashboard", hashlib.sha256).hexdigest()


def _names_loopback(host: str) -> bool:
    """Whether a Host header names this machine's loopback: 127.0.0.0/8, ::1 or localhost, with any
    port."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match["ipv6"] or match["name"]
    try:
        return name.lower() == "localhost" or ip_address(name).is_loopback
    except ValueError:  # any other name
        return False


def _from_elsewhere(headers: Headers) -> bool:
    """Whether a page of another origin sent a request.

    Browsers name the origin of every request that changes something; programs need not.
    """
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return True
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    # A proxy in front decides whether it is HTTPS.
    return origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}")
