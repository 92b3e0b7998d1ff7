"""`hpsearch dashboard`: the studies of a database as pages, behind the gate."""

from __future__ import annotations

import errno
import os
import secrets
import socket
from contextlib import closing
from importlib import import_module
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote

from hpsearch.cli.output import note
from hpsearch.errors import UserError
from hpsearch.store.store import Store

TOKEN_VARIABLE = "HPSEARCH_DASHBOARD_TOKEN"  # noqa: S105  # its name, not the token

SHORTEST_TOKEN = 16
"""Characters of the shortest token allowed: shorter ones could be guessed."""

PACKAGES = ("python_multipart", "starlette", "uvicorn")
"""What the extra `dashboard` installs."""

PLAIN_HTTP = (
    "plain HTTP: anyone who can read this network's traffic can read the token and every page; "
    "on networks you do not trust, use ssh -L or a proxy with TLS"
)
END_S = 3
"""Seconds that answers may take once the dashboard is to end."""


def serve_dashboard(
    name: str | None, host: str, port: int, storage: str, *, allow_changes: bool
) -> None:
    """Serve the dashboard until interrupted.

    Args:
        name: The study to show first.
        host: The address to listen on, or a name of it. Beyond loopback, requests need a token.
        port: 0 takes a free one.
        storage: The database's URL.
        allow_changes: Whether its pages may change studies. Then requests need a token everywhere.

    Raises:
        UserError: The dashboard is not installed, the token is too short, or it cannot listen
            there.
        StudyNotFound: There is no study of that name.
        KeyboardInterrupt: At its end.
    """
    try:
        for each in PACKAGES:
            import_module(each)
        import uvicorn

        from hpsearch.pages.gate import Gate
        from hpsearch.pages.site import site_of
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        hint = "install it, in the folder of hpsearch's sources: pip install '.[dashboard]'"
        raise UserError("the dashboard is not installed", hint) from None

    family, address = _resolve(host, port)
    loopback = ip_address(address[0]).is_loopback
    token = _token(is_needed=allow_changes or not loopback)
    with closing(Store.open(storage, create=False)) as store:
        study = None if name is None else store.find_study(name)
        app = Gate(site_of(store, allow_changes=allow_changes), token, allow_changes=allow_changes)
        with _listening(family, address, host) as listening:
            path = "" if study is None else f"studies/{study.id}"
            if token is not None:
                path += "?token=" + quote(token, safe="", errors="surrogateescape")
            site = f"http://{_shown(host, address[0])}:{listening.getsockname()[1]}"
            note(f"{site}/{path} (stop with Ctrl-C)")
            if not loopback:
                note(PLAIN_HTTP)
            uvicorn.Server(_config(app)).run([listening])
            raise KeyboardInterrupt


def _config(app: Any) -> Any:
    """How the application is served.

    Requests are not logged: their addresses may hold the token. Nor is what a proxy says of them
    believed: who is behind it is not known.
    """
    import uvicorn

    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=END_S,
    )


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


def _token(*, is_needed: bool) -> str | None:
    """The token of the environment, or else a new one if one is needed.

    Raises:
        UserError: The token of the environment is too short.
    """
    given = os.environ.get(TOKEN_VARIABLE)
    if given is None:
        return secrets.token_urlsafe(32) if is_needed else None
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


def _listening(family: socket.AddressFamily, address: tuple[Any, ...], host: str) -> socket.socket:
    """A socket that listens.

    Raises:
        UserError: The port is in use, or the address is not this machine's.
    """
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        hint = "choose another with --port"
        if error.errno == errno.EADDRNOTAVAIL:
            hint = "--host must be an address of this machine, or 0.0.0.0 for all of its addresses"
        message = f"cannot listen on {host}, port {address[1]}: {error.strerror}"
        raise UserError(message, hint) from None
    return listening
