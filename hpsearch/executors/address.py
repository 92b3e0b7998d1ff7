"""Whether anything answers where a Ray cluster is said to be. Ray itself would wait for minutes."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from hpsearch.errors import ClusterUnreachable, UserError

ANSWER_S = 5.0
"""How long an address is given to accept a connection."""


def refuse_unreachable(address: str) -> None:
    """See that something listens at a Ray address: ``host:port`` or ``ray://host:port``.

    Raises:
        UserError: It names no host and port.
        ClusterUnreachable: Nothing accepts a connection there.
    """
    if address in ("auto", "local"):
        return
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise UserError(f"the address {address!r} names no host and port", "use host:6379 or ray://host:10001")
    try:
        possible = host.isprintable() and bool(host.encode("idna"))
    except UnicodeError:
        possible = False
    if not possible:
        raise UserError(f"the address {address!r} names no host", "use host:6379 or ray://host:10001")
    try:
        socket.create_connection((host, port), timeout=ANSWER_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ClusterUnreachable(
            f"no cluster answers at {address}: {reason}", "check the address, or start it"
        ) from None
