"""`hpsearch dashboard`: Optuna's dashboard on our database, behind the gate."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import socket
import threading
from contextlib import closing, suppress
from ipaddress import ip_address
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import quote
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication

from hpsearch.cli.dashboard.gate import Gate
from hpsearch.cli.output import note
from hpsearch.errors import UserError
from hpsearch.store.store import Store

TOKEN_VARIABLE = "HPSEARCH_DASHBOARD_TOKEN"  # noqa: S105  # its name, not the token

SHORTEST_TOKEN = 16
"""Characters of the shortest token allowed: shorter ones could be guessed."""

PLAIN_HTTP = (
    "plain HTTP: anyone who can read this network's traffic can read the token and every page; "
    "on networks you do not trust, use ssh -L or a proxy with TLS"
)


def serve_dashboard(name: str | None, host: str, port: int, storage: str) -> None:
    """Serve the dashboard until interrupted.

    Args:
        name: The study to show first.
        host: The address to listen on, or a name of it. Beyond loopback, requests need the token.
        port: 0 takes a free one.
        storage: The database's URL.

    Raises:
        UserError: The dashboard is not installed, the token is too short, or it cannot listen
            there.
        StudyNotFound: There is no study of that name.
    """
    try:
        from optuna_dashboard import wsgi
    except ModuleNotFoundError:
        hint = "install it: pip install 'hpsearch[dashboard]'"
        raise UserError("the dashboard is not installed", hint) from None
    from hpsearch.optuna_storage.storage import StudyStorage

    family, address = _resolve(host, port)
    loopback = ip_address(address[0]).is_loopback
    token = _token(loopback)
    with closing(Store.open(storage, create=False)) as store:
        study = None if name is None else store.find_study(name)
        with _listen(family, address, Gate(wsgi(StudyStorage(store)), token), host) as server:
            path = "dashboard" if study is None else f"dashboard/studies/{study.id}"
            if token is not None:
                path += "?token=" + quote(token, safe="", errors="surrogateescape")
            site = f"http://{_shown(host, address[0])}:{server.server_port}"
            note(f"{site}/{path} (stop with Ctrl-C)")
            if not loopback:
                note(PLAIN_HTTP)
            _serve(server)


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """The family and address of a socket to listen on, IPv4 where a name has both.

    Raises:
        UserError: The name has no address.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        hint = "--host must be an address of this machine, or 0.0.0.0 for all of its addresses"
        raise UserError(f"--host {host[:80]}: no address is known for that name", hint) from None
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, address


def _token(loopback: bool) -> str | None:
    """The token of the environment, or else a new one; None on loopback without one.

    Raises:
        UserError: The token of the environment is too short.
    """
    given = os.environ.get(TOKEN_VARIABLE)
    if given is None:
        return None if loopback else secrets.token_urlsafe(32)
    if len(given) < SHORTEST_TOKEN:
        hint = (
            f"use {SHORTEST_TOKEN} or more that nobody can guess; "
            f"without {TOKEN_VARIABLE}, a token is made if one is needed"
        )
        raise UserError(f"{TOKEN_VARIABLE} has {len(given)} characters, too few for a token", hint)
    return given


def _shown(host: str, address: str) -> str:
    """The host for a link; all addresses are written as the machine's name."""
    ip = ip_address(address)
    if ip.is_unspecified:
        return socket.gethostname()
    if ip.is_loopback:  # a name of it may be one that the gate refuses
        return f"[{address}]" if ip.version == 6 else address
    return f"[{host}]" if ":" in host else host


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each request in its own thread, so that a silent connection does not block others."""

    daemon_threads = True

    def __init__(
        self, family: socket.AddressFamily, address: tuple[Any, ...], app: WSGIApplication
    ) -> None:
        self.address_family = family
        super().__init__(address, _Quiet)
        self.set_app(app)


class _Quiet(WSGIRequestHandler):
    """Answers requests without logging them: their addresses may hold the token."""

    timeout = 30.0
    """Seconds for which a connection may be silent."""

    def handle(self) -> None:
        """Answer a request."""
        with suppress(TimeoutError, ConnectionError):  # it disconnected, or sent nothing
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _listen(
    family: socket.AddressFamily, address: tuple[Any, ...], app: WSGIApplication, host: str
) -> _Server:
    """A server that listens.

    Raises:
        UserError: The port is in use, or the address is not this machine's.
    """
    try:
        return _Server(family, address, app)
    except OSError as error:
        hint = "choose another with --port"
        if error.errno == errno.EADDRNOTAVAIL:
            hint = "--host must be an address of this machine, or 0.0.0.0 for all of its addresses"
        message = f"cannot listen on {host}, port {address[1]}: {error.strerror}"
        raise UserError(message, hint) from None


def _serve(server: WSGIServer) -> None:
    """Serve until Ctrl-C, in the order that leaves the port free.

    Raises:
        KeyboardInterrupt: At its end.
    """

    def shut_down(*_: object) -> None:
        threading.Thread(target=server.shutdown).start()

    before = signal.signal(signal.SIGINT, shut_down)
    try:
        server.serve_forever()
    finally:
        signal.signal(signal.SIGINT, before)
    raise KeyboardInterrupt
