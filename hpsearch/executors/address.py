"""True if anything answers at the address of a Ray cluster. Ray itself would wait for minutes."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from hpsearch.errors import Unreachable, UserError

HINT = "use host:6379, the address of the cluster's head"

ANSWER_S = 5.0  # how long an address is given to accept a connection


def refuse_unreachable(address: str) -> None:
    """Check that something listens at a Ray address, ``host:port``. Raises UserError if it is not
    such an address, Unreachable if nothing accepts a connection."""
    if address in ("auto", "local"):
        return
    host, port = _host_and_port(address)
    if not _may_be_a_host(host):
        raise UserError(f"the address {address!r} names no host", HINT)
    try:
        socket.create_connection((host, port), timeout=ANSWER_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unreachable(
            f"no cluster answers at {address}: {reason}", "check the address, or start it"
        ) from None


def _host_and_port(address: str) -> tuple[str, int]:
    if "://" in address:
        raise UserError(
            f"the address {address!r} is for another protocol: a driver is a process of the cluster"
            " itself",
            f"run it on a machine of the cluster, or one that its nodes can reach, and {HINT}",
        )
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise UserError(f"the address {address!r} names no host and port", HINT)
    return host, port


def _may_be_a_host(host: str) -> bool:
    if not host.isprintable():
        return False
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False
