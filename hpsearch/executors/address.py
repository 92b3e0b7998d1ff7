"""Whether anything answers where a Ray cluster is said to be. Ray itself would wait for minutes."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from hpsearch.errors import ClusterUnreachable, UserError

HINT = "use host:6379, the address of the cluster's head"

ANSWER_S = 5.0
"""How long an address is given to accept a connection."""


def refuse_unreachable(address: str) -> None:
    """See that something listens at a Ray address, ``host:port``.

    Raises:
        UserError: It names no host and port, or is for another protocol than that of a cluster's own processes.
        ClusterUnreachable: Nothing accepts a connection there.
    """
    if address in ("auto", "local"):
        return
    if "://" in address:
        what = f"the address {address!r} is for another protocol: a driver is a process of the cluster itself"
        raise UserError(what, f"run it on a machine of the cluster, or one that its nodes can reach, and {HINT}")
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise UserError(f"the address {address!r} names no host and port", HINT)
    try:
        possible = host.isprintable() and bool(host.encode("idna"))
    except UnicodeError:
        possible = False
    if not possible:
        raise UserError(f"the address {address!r} names no host", HINT)
    try:
        socket.create_connection((host, port), timeout=ANSWER_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ClusterUnreachable(
            f"no cluster answers at {address}: {reason}", "check the address, or start it"
        ) from None
