"""`hpsearch dashboard`: studies as pages, behind the gate."""

import os
import secrets
import socket
from contextlib import closing
from importlib import import_module
from ipaddress import ip_address
from urllib.parse import quote

from hpsearch.cli.output import note
from hpsearch.errors import UserError
from hpsearch.store.store import Store

TOKEN_VARIABLE = "HPSEARCH_DASHBOARD_TOKEN"  # noqa: S105  # its name, not the token
SHORTEST_TOKEN = 16  # characters of the shortest token allowed: shorter ones could be guessed
PACKAGES = ("python_multipart", "starlette", "uvicorn")  # the packages of the extra `dashboard`

PLAIN_HTTP = (
    "plain HTTP: anyone who can read this network's traffic can read the token and every page; "
    "on networks you do not trust, use ssh -L or a proxy with TLS"
)
END_S = 3  # seconds that answers may take once the dashboard is to end


def serve_dashboard(
    name: str | None, host: str, port: int, storage: str, *, allow_changes: bool
) -> None:
    try:
        for package in PACKAGES:
            import_module(package)
        import uvicorn

        from hpsearch.views.pages.gate import Gate
        from hpsearch.views.pages.site import site_of
    except ModuleNotFoundError as error:
        hint = "install it, in the folder of hpsearch's sources: pip install '.[dashboard]'"
        raise UserError(f"the dashboard needs the package {error.name}", hint) from None

    with closing(Store.open(storage, create=False)) as store, _listening(host, port) as listening:
        study = None if name is None else store.find_study(name)
        address, taken = listening.getsockname()[:2]
        loopback = ip_address(address).is_loopback
        token = _token(is_needed=allow_changes or not loopback)
        app = Gate(site_of(store, allow_changes=allow_changes), token, allow_changes=allow_changes)
        path = "" if study is None else f"studies/{study.id}"
        if token is not None:
            path += "?token=" + quote(token, safe="", errors="surrogateescape")
        note(f"http://{_shown(host, address)}:{taken}/{path} (stop with Ctrl-C)")
        if not loopback:
            note(PLAIN_HTTP)
        # Requests are not logged: their addresses may hold the token. Nor is what a proxy says of
        # them believed: who is behind it is not known.
        config = uvicorn.Config(
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
        uvicorn.Server(config).run([listening])
        raise KeyboardInterrupt


def _token(*, is_needed: bool) -> str | None:
    """The token of the environment, which must be long, or else a new one if one is needed."""
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


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises UserError if the port or the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if not host:  # which would stand for all addresses
            raise ValueError("the host is empty")
        return socket.create_server((host, port), family=family)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        hint = "choose another --port; --host is an address of this machine, or 0.0.0.0 for all"
        raise UserError(f"cannot listen on {host[:80]}, port {port}: {why}", hint) from None
