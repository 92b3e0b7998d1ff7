"""How requests that send or change something are taken, so that they cost nobody else anything.

A body is read whole before any thread or connection works on its request: a slow one occupies
memory and nothing else. Changes are made one at a time, and wait for other writers of the database
only shortly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hpsearch.errors import StoreBusy
from hpsearch.pages.rendering import html

PATIENCE_S = 5.0
"""How long a change waits for its turn, and then for other writers of the database."""
MOST_BYTES = 1 << 20
"""Of the body of a request."""
MOST_S = 30.0
"""How long a body may take to arrive."""
MOST_BODIES = 32
"""Bodies that may be on their way at once: one more ends the oldest."""


class Bodies:
    """An ASGI application that passes requests on to another one once their bodies are there.

    It answers 408 to a body that takes too long or is the oldest of too many, 413 to one that is
    too large, and nothing to who hangs up.

    Args:
        app: What answers.
        most_s: How long a body may take to arrive, in seconds.
    """

    def __init__(self, app: ASGIApp, most_s: float = MOST_S) -> None:
        self._app = app
        self._most_s = most_s
        self._arriving: list[asyncio.Timeout] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            body = await self._arrived(receive)
        except TimeoutError:
            answer = html("error", 408, title="Too slow", message=_TOO_SLOW, hint=None)
            await answer(scope, receive, send)
            return
        except _TooLarge:
            answer = html("error", 413, title="Too large", message=_TOO_LARGE, hint=None)
            await answer(scope, receive, send)
            return
        except _HungUp:
            return
        await self._app(scope, _replayed(body, receive), send)

    async def _arrived(self, receive: Receive) -> bytes:
        """The whole body of a request.

        Raises:
            TimeoutError: It takes too long, or too many others are on their way.
            _TooLarge: It is.
            _HungUp: The rest will never come.
        """
        async with asyncio.timeout(self._most_s) as limit:
            self._arriving.append(limit)
            try:
                if len(self._arriving) > MOST_BODIES:
                    oldest = self._arriving.pop(0)
                    oldest.reschedule(asyncio.get_running_loop().time())
                return await _whole(receive)
            finally:
                if limit in self._arriving:
                    self._arriving.remove(limit)


class _TooLarge(Exception):
    """A body has more than `MOST_BYTES`."""


class _HungUp(Exception):
    """The client has closed the connection."""


_TOO_SLOW = "what was sent did not arrive in time: send it again"
_TOO_LARGE = f"what was sent is too large: at most {MOST_BYTES} bytes are taken"


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def _whole(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _HungUp
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            raise _TooLarge
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives a body that has arrived, and then what else the client does."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class ChangeTurns:
    """Lets changes be made one at a time.

    Args:
        patience_s: How long one waits for its turn, in seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """The caller's turn, while the block lasts.

        Raises:
            StoreBusy: Others had their turns for too long.
        """
        try:
            async with asyncio.timeout(self._patience_s):
                await self._lock.acquire()
        except TimeoutError:
            raise StoreBusy("other changes wait for the database") from None
        try:
            yield
        finally:
            self._lock.release()
