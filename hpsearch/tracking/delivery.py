"""Delivers notices to a URL or a command, in a thread: the study never waits for them.

What cannot be delivered is told of once, on stderr. Neither the URL nor the arguments of the
command are ever printed, since they may have a secret in them.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
import math
import os
import shlex
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from hpsearch.errors import UserError
from hpsearch.tracking.notices import Notice, Notices

TIMEOUT_S = 10.0
"""How long one notice may take."""
END_S = 15.0
"""How long the end of a study waits for notices that are still under way."""

log = logging.getLogger("hpsearch")


class DeliveryError(Exception):
    """A notice could not be delivered. The text has no secret in it."""


class Recipient(Protocol):
    """Who is sent notices."""

    name: str
    """What may be printed of it."""

    def deliver(self, notice: Notice) -> None:
        """Deliver a notice, or raise a `DeliveryError` after a while."""


class Hook:
    """A URL that a notice is sent to, by POST. A user and password in it become a header."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.name = str(parts.hostname)
        user_info, _, address = parts.netloc.rpartition("@")
        self._url = urlunsplit(parts._replace(netloc=address))
        self._headers = {"Content-Type": "application/json", "User-Agent": "hpsearch"}
        if user_info:
            encoded = base64.b64encode(unquote(user_info).encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"

    def deliver(self, notice: Notice) -> None:
        """Send a notice as JSON."""
        request = urllib.request.Request(  # noqa: S310 - http or https, see `recipient_of`
            self._url,
            data=_as_json(notice).encode(),
            headers=self._headers,
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310 - the same
                pass
        except urllib.error.HTTPError as error:
            raise DeliveryError(f"it answers {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            raise DeliveryError(f"it cannot be reached: {error.reason}") from None
        except (OSError, ValueError) as error:
            raise DeliveryError(f"it cannot be reached: {type(error).__name__}") from None
        except http.client.HTTPException as error:
            raise DeliveryError(f"its answer is not HTTP: {type(error).__name__}") from None


class Messenger:
    """A command that is given a notice on its standard input."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self.name = words[0]

    def deliver(self, notice: Notice) -> None:
        """Run the command, with the event and the study in its environment too."""
        named = {"HPSEARCH_EVENT": notice["event"], "HPSEARCH_STUDY": notice["study"]}
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **named},
                start_new_session=True,
            )
        except OSError as error:
            raise DeliveryError(f"it cannot be started: {error.strerror}") from None
        try:
            process.communicate(_as_json(notice).encode(), timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise DeliveryError(f"it took more than {TIMEOUT_S:.0f} s and was killed") from None
        if process.returncode != 0:
            raise DeliveryError(f"it ended with code {process.returncode}")


def recipient_of(text: str | None) -> Recipient | None:
    """Who ``--notify`` names: a URL, or a command that is split as a shell would split it.

    Returns: None if it is not given.

    Raises:
        UserError: It is neither.
    """
    if text is None:
        return None
    scheme, separator, _ = text.strip().partition("://")
    if separator and scheme.isalnum():
        return Hook(_checked_url(text.strip(), scheme))
    try:
        words = shlex.split(text)
    except ValueError as error:
        what = f"--notify: the command cannot be split into words: {str(error).lower()}"
        raise UserError(what, "close its quotes") from None
    if not words:
        raise UserError("--notify: is empty", "give a URL or a command")
    if shutil.which(words[0]) is None:
        what = f"--notify: there is no program {words[0]}"
        raise UserError(what, "give a URL that begins with https://, or a command by its path")
    return Messenger(words)


def _checked_url(url: str, scheme: str) -> str:
    """The URL, if notices can be sent there; it is not repeated in errors."""
    hint = "give one such as https://hooks.example.com/..."
    if scheme.lower() not in ("http", "https"):
        raise UserError(f"--notify: notices cannot be sent to {scheme}:// URLs", hint)
    try:
        host, _ = urlsplit(url).hostname, urlsplit(url).port
    except ValueError:
        host = None
    if not host or not url.isascii() or any(letter.isspace() for letter in url):
        raise UserError("--notify: the URL is not a valid one", hint)
    return url


class Courier:
    """A thread that delivers notices one after another.

    Args:
        recipient: Who gets them.
    """

    def __init__(self, recipient: Recipient) -> None:
        self._recipient = recipient
        self._notices: SimpleQueue[Notice | None] = SimpleQueue()
        self._has_complained = False
        self._thread = threading.Thread(target=self._work, name="notices", daemon=True)
        self._thread.start()

    def deliver(self, notice: Notice) -> None:
        """Deliver a notice, after all before it."""
        self._notices.put(notice)

    def close(self) -> None:
        """Deliver what is left; wait for that for a while."""
        self._notices.put(None)
        self._thread.join(END_S)
        if self._thread.is_alive():
            self._complain("it takes too long; the last notices are lost")

    def _work(self) -> None:
        while (notice := self._notices.get()) is not None:
            try:
                self._recipient.deliver(notice)
            except DeliveryError as error:
                self._complain(str(error))

    def _complain(self, what: str) -> None:
        """Warn once: what follows most likely has the same cause."""
        if self._has_complained:
            return
        self._has_complained = True
        name = self._recipient.name
        log.warning("notices do not arrive at %s: %s - the study goes on", name, what)


@contextmanager
def notifying(study: str, recipient: Recipient | None) -> Iterator[Notices]:
    """What watches a study and sends notices; errors that leave the block are sent too.

    Args:
        study: The study's name.
        recipient: Who gets them; None for nobody.
    """
    if recipient is None:
        yield Notices(study, _to_nobody)
        return
    courier = Courier(recipient)
    notices = Notices(study, courier.deliver)
    try:
        yield notices
    except Exception as error:
        notices.failed(error)
        raise
    finally:
        courier.close()


def _to_nobody(notice: Notice) -> None:
    """Send nothing."""


def _as_json(notice: Notice) -> str:
    return json.dumps(_finite(notice), allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    """The value with null for numbers that are not finite, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
