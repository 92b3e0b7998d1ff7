"""A check of the address of a Ray cluster. Ray itself would wait for minutes."""

import socket
from urllib.parse import urlsplit

from hpsearch.errors import Unreachable, UserError

ANSWER_S = 5.0  # how long an address is given to accept a connection


def refuse_unreachable(address: str) -> None:
    """Check that something listens at a Ray address, ``host:port``. Raises UserError if it is not
    such an address, Unreachable if nothing accepts a connection."""
    if address in ("auto", "local"):
        return
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        what = f"the address {address!r} names no host and port"
        raise UserError(what, "use host:6379, the address of the cluster's head")
    try:
        socket.create_connection((host, port), timeout=ANSWER_S).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = f"no cluster answers at {address}: {reason}"
        raise Unreachable(what, "check the address, or start it") from None
