"""Delivers notices to a URL or a command, in a thread: the study never waits for them.

The first failure is reported on stderr. Neither the URL nor the arguments of the command are ever
printed, since they may hold a secret.
"""

from __future__ import annotations

import base64
import functools
import http.client
import json
import logging
import os
import shlex
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from urllib.parse import unquote, urlsplit, urlunsplit

from hpsearch.errors import UserError
from hpsearch.running.tracking.notices import Notice, Notices

TIMEOUT_S = 10.0
"""Seconds that one notice may take."""
END_S = 15.0
"""Seconds that the end of a study waits for notices that are still under way."""

log = logging.getLogger("hpsearch")


class DeliveryError(Exception):
    """A notice could not be delivered. The text has no secret in it."""


@dataclass(frozen=True)
class Recipient:
    """The recipient of notices: a name without secrets, and a function that delivers a notice or
    raises `DeliveryError`."""

    name: str
    deliver: Callable[[Notice], None]


def recipient_of(text: str | None) -> Recipient | None:
    """The recipient that ``--notify`` names: a URL, or a command, split as in a shell; None without
    one. Raises UserError if it is neither."""
    if text is None:
        return None
    url = text.strip()
    scheme, separator, _ = url.partition("://")
    if separator and scheme.isalnum():
        _refuse_url(url, scheme)
        return Recipient(str(urlsplit(url).hostname), functools.partial(_post, url))
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
    return Recipient(words[0], functools.partial(_run, words))


def _refuse_url(url: str, scheme: str) -> None:
    """Refuse a URL that notices cannot be sent to, without repeating it."""
    hint = "give one such as https://hooks.example.com/..."
    if scheme.lower() not in ("http", "https"):
        raise UserError(f"--notify: notices cannot be sent to {scheme}:// URLs", hint)
    try:
        host, _ = urlsplit(url).hostname, urlsplit(url).port
    except ValueError:
        host = None
    if not host or " " in url:
        raise UserError("--notify: the URL is not a valid one", hint)


def _post(url: str, notice: Notice) -> None:
    """Send a notice as JSON. A user and password in the URL become a header."""
    parts = urlsplit(url)
    user_info, _, address = parts.netloc.rpartition("@")
    headers = {"Content-Type": "application/json", "User-Agent": "hpsearch"}
    if user_info:
        encoded = base64.b64encode(unquote(user_info).encode()).decode()
        headers["Authorization"] = f"Basic {encoded}"
    request = urllib.request.Request(  # noqa: S310 - http or https, see `_refuse_url`
        urlunsplit(parts._replace(netloc=address)), _as_json(notice), headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310 - the same
            pass
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", type(error).__name__)
        code = getattr(error, "code", "")
        raise DeliveryError(f"it cannot be reached: {code} {reason}") from None


def _run(words: Sequence[str], notice: Notice) -> None:
    """Give a notice to a command, with the event and the study in its environment too."""
    named = {"HPSEARCH_EVENT": notice["event"], "HPSEARCH_STUDY": notice["study"]}
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command
            words,
            input=_as_json(notice),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **named},
            timeout=TIMEOUT_S,
            check=False,
            start_new_session=True,
        )
    except OSError as error:
        raise DeliveryError(f"it cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise DeliveryError(f"it took more than {TIMEOUT_S:.0f} s and was killed") from None
    if done.returncode != 0:
        raise DeliveryError(f"it ended with code {done.returncode}")


class _Courier:
    def __init__(self, recipient: Recipient) -> None:
        self._recipient = recipient
        self._notices: SimpleQueue[Notice | None] = SimpleQueue()
        self.deliver = self._notices.put
        self._has_complained = False
        self._thread = threading.Thread(target=self._work, name="notices", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Deliver the rest, but not for long."""
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
        """Warn once: later failures most likely have the same cause."""
        if self._has_complained:
            return
        self._has_complained = True
        name = self._recipient.name
        log.warning("notices do not arrive at %s: %s - the study goes on", name, what)


@contextmanager
def notifying(study: str, recipient: Recipient | None) -> Iterator[Notices]:
    """Watch a study and send notices; errors that leave the block are sent too."""
    if recipient is None:
        yield Notices(study, lambda notice: None)
        return
    courier = _Courier(recipient)
    notices = Notices(study, courier.deliver)
    try:
        yield notices
    except Exception as error:
        notices.failed(error)
        raise
    finally:
        courier.close()


def _as_json(notice: Notice) -> bytes:
    return json.dumps(notice, default=str).encode()
