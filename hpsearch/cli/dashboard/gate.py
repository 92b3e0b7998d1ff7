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

It does not encrypt: over HTTP, anyone who can read the traffic can read the token. Without a token
on loopback, other users of this machine are let in. And cookies do not depend on the port: browsers
show them to every server of the same host name that they visit.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, unquote_to_bytes
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

COOKIE = "hpsearch-dashboard"
"""How the cookie's name begins; it ends with the port, so that each dashboard has its own."""

_READING = ("GET", "HEAD", "OPTIONS")

_HEADERS = [
    (
        "Content-Security-Policy",
        # Plotly makes the WebGL programs of parallel coordinates with eval, without users' text.
        "default-src 'self'; script-src 'self' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline' data:; img-src 'self' data: blob:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "same-origin"),
    ("X-Content-Type-Options", "nosniff"),
]
"""Sent with every answer. If the dashboard sends a policy too, browsers apply both."""

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

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<name>[^\s\[\]:@/?#,]+))(?::[0-9]*)?")


class Gate:
    """A WSGI application that passes permitted requests on to another one; see the module's text.

    Args:
        app: What is guarded.
        token: What every request must present; None lets in every request to a loopback name.
    """

    def __init__(self, app: WSGIApplication, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode("utf-8", "surrogateescape")

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request.

        303 to the link, 401 without the token, 403 to a foreign page, else what the app answers.
        """
        token = self._token
        if token is None:
            if not _names_loopback(environ.get("HTTP_HOST", "")):
                return _answer(environ, start_response, HTTPStatus.FORBIDDEN, _NOT_LOOPBACK)
        elif _follows_link(environ, token):
            return _let_in(environ, start_response, token)
        elif not _known(environ, token):
            how = ("WWW-Authenticate", "Bearer")
            return _answer(environ, start_response, HTTPStatus.UNAUTHORIZED, _UNKNOWN, how)
        if environ["REQUEST_METHOD"] not in _READING and _from_elsewhere(environ):
            return _answer(environ, start_response, HTTPStatus.FORBIDDEN, _FOREIGN_ORIGIN)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            return start_response(status, [*headers, *_HEADERS], *exc_info)

        return self._app(environ, start)


# ----------------------------------------------------------------------------------------- answers


def _answer(
    environ: WSGIEnvironment,
    start_response: StartResponse,
    status: HTTPStatus,
    text: str,
    *headers: tuple[str, str],
) -> Iterable[bytes]:
    """Answer with a text of the gate."""
    plain = [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")]
    start_response(f"{status.value} {status.phrase}", [*plain, *headers, *_HEADERS])
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else text.encode()]


def _let_in(
    environ: WSGIEnvironment, start_response: StartResponse, token: bytes
) -> Iterable[bytes]:
    """Leave the cookie in the browser, and send it to the same page without the token in its
    address."""
    # One slash in front: with two, the path would name another host.
    path = environ.get("PATH_INFO", "").lstrip("/")
    page = "/" + quote(path.encode("latin-1"))
    fields = environ.get("QUERY_STRING", "").split("&")
    rest = "&".join(field for field in fields if not field.startswith("token="))
    if rest:
        page += "?" + quote(rest, safe="!$%&'()*+,-./:;=?@_~", encoding="latin-1")
    cookie = f"{_cookie_name(environ)}={_cookie_value(token)}; HttpOnly; SameSite=Strict; Path=/"
    headers = ("Location", page), ("Set-Cookie", cookie)
    return _answer(environ, start_response, HTTPStatus.SEE_OTHER, "", *headers)


# ---------------------------------------------------------------------------------------- requests


def _follows_link(environ: WSGIEnvironment, token: bytes) -> bool:
    """Whether a request asks for a page, with the token in its address."""
    asks_for_page = environ["REQUEST_METHOD"] in ("GET", "HEAD")
    return asks_for_page and _same(_token_of_link(environ), token)


def _known(environ: WSGIEnvironment, token: bytes) -> bool:
    """Whether a request has the cookie, or the token in its header."""
    scheme, _, given = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() == "bearer" and _same(given.encode("latin-1"), token):
        return True
    wanted_name = _cookie_name(environ)
    wanted_value = _cookie_value(token).encode()
    for cookie in environ.get("HTTP_COOKIE", "").split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == wanted_name and _same(value.encode("latin-1"), wanted_value):
            return True
    return False


def _token_of_link(environ: WSGIEnvironment) -> bytes | None:
    """The token in a request's address, if there is one."""
    for field in environ.get("QUERY_STRING", "").split("&"):
        name, _, value = field.partition("=")
        if name == "token":
            return unquote_to_bytes(value.encode("latin-1"))
    return None


def _same(given: bytes | None, expected: bytes) -> bool:
    """Whether two secrets are the same, in a time that does not depend on where they differ."""
    return given is not None and hmac.compare_digest(given, expected)


def _cookie_name(environ: WSGIEnvironment) -> str:
    return f"{COOKIE}-{environ['SERVER_PORT']}"


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


def _from_elsewhere(environ: WSGIEnvironment) -> bool:
    """Whether a page of another origin sent a request.

    Browsers name the origin of every request that changes something; programs need not.
    """
    origin, host = environ.get("HTTP_ORIGIN"), environ.get("HTTP_HOST", "").lower()
    # A proxy in front decides whether it is HTTPS.
    return origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}")
