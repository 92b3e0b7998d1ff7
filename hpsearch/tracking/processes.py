"""The senders of a study, as its driver starts and ends them.

The driver does nothing for a tracker but start its process and, at the end, wait for it for a
while. A tracker that fails is told of once, on stderr, and the study continues.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from hpsearch.store.connecting.url import in_memory, parse_url
from hpsearch.store.store import Store
from hpsearch.study_file.trackers import NamedTracker
from hpsearch.tracking.secrets import without_secrets
from hpsearch.tracking.sender import Sending

END_S = 30.0
"""How long the end of a study waits for its trackers, all together."""
LONGER_S = 15.0
"""So much longer a sender may go on whose driver does not wait for it any more."""

log = logging.getLogger("hpsearch")


class Senders:
    """The senders of one study: none before `begin`.

    Args:
        store: The database.
        study: The study's name.
        folder: Its folder of checkpoints, a path or a URL.
        trackers: Which trackers hear of it.
        end_s: How long `end` waits; None for as long as it takes.
        again: Whether to forget what they have been told.
    """

    def __init__(
        self,
        store: Store,
        study: str,
        folder: str,
        trackers: Sequence[NamedTracker],
        end_s: float | None = END_S,
        *,
        again: bool = False,
    ) -> None:
        self._store, self._study, self._folder = store, study, folder
        self._trackers, self._end_s, self._again = trackers, end_s, again
        self._senders: list[_Sender] | None = None

    def begin(self) -> None:
        """Start them. The study must be in the database. Does nothing the second time."""
        if self._senders is not None:
            return
        self._senders = []
        if self._trackers and in_memory(parse_url(self._store.url)):
            log.warning("track: trackers do not hear of a study whose database is in memory")
            return
        for tracker in self._trackers:
            try:
                self._senders.append(self._started(tracker))
            except OSError as error:
                log.warning("track: %s is left out: %s", tracker.kind, error)

    def end(self) -> list[str]:
        """Let them send what is left, and wait for that for a while.

        Returns: For each tracker that everything was sent to, where that is.
        """
        senders, self._senders = self._senders or [], []
        for sender in senders:
            sender.ask_to_end()
        until = None if self._end_s is None else time.monotonic() + self._end_s
        sent = [sender.wait(until) for sender in senders]
        return [text for text in sent if text is not None]

    def _started(self, tracker: NamedTracker) -> _Sender:
        order = Sending(
            storage=self._store.url,
            study=self._study,
            folder=self._folder,
            tracker=tracker.model_dump(include={tracker.kind}),
            grace_s=1e9 if self._end_s is None else self._end_s + LONGER_S,
            again=self._again,
        )
        return _Sender(tracker.kind, order)


class _Sender:
    """One sender: its process, and a thread that reads what it says."""

    def __init__(self, kind: str, order: Sending) -> None:
        self._kind, self._study = kind, order.study
        self._sent: str | None = None
        self._has_complained = False
        self._is_asked = False
        """Whether it was asked to end."""
        self._last_lines: deque[str] = deque(maxlen=5)
        self._process = subprocess.Popen(
            # -P: a folder of the tracker's name beside the study file is not its package.
            [sys.executable, "-P", "-m", "hpsearch.tracking.sender"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is the driver's business
        )
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died; its exit code tells
            self._process.stdin.write(order.as_line())
            self._process.stdin.flush()
        self._listeners = [
            _listening(self._process.stdout, self._hear, self._notice_end),
            _listening(self._process.stderr, self._last_lines.append),
        ]

    def ask_to_end(self) -> None:
        """Close its input."""
        assert self._process.stdin is not None
        self._is_asked = True
        with suppress(OSError):
            self._process.stdin.close()

    def wait(self, until: float | None) -> str | None:
        """Wait for its end, and kill it if that takes too long.

        Returns: Where everything was sent to; None if it was not.
        """
        left_s = None if until is None else max(0.0, until - time.monotonic())
        try:
            self._process.wait(left_s)
        except subprocess.TimeoutExpired:
            self._complain("it has not taken in the rest of the study in time")
        self._kill()
        for listener in self._listeners:
            listener.join(1.0)
        if self._sent is None:
            self._complain_of_end()
        return self._sent

    def _notice_end(self) -> None:
        """Tell at once of a process that ends although nobody has asked it to."""
        if not self._is_asked:
            self._process.wait()
            self._complain_of_end()

    def _complain_of_end(self) -> None:
        self._complain(f"its process ended with code {self._process.returncode}{self._said()}")

    def _hear(self, line: str) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if "trouble" in message:
            self._complain(message["trouble"])
        self._sent = message.get("sent", self._sent)

    def _complain(self, what: str) -> None:
        if self._has_complained:
            return
        self._has_complained = True
        log.warning(
            "track: %s does not work: %s - the study does not wait for it; once it works: "
            "hpsearch track %s",
            self._kind,
            without_secrets(what),
            self._study,
        )

    def _said(self) -> str:
        lines = [line.strip() for line in self._last_lines if line.strip()]
        return f": {lines[-1]}" if lines else ""

    def _kill(self) -> None:
        """Kill the process where it has not ended, and whatever its library has left running."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _listening(
    stream: IO[str] | None,
    hear: Callable[[str], object],
    at_end: Callable[[], None] = lambda: None,
) -> threading.Thread:
    """A thread that reads the lines of a stream to its end."""
    assert stream is not None
    lines = stream

    def read() -> None:
        with lines:
            for line in lines:
                hear(line)
        at_end()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


@contextmanager
def sending(senders: Senders) -> Iterator[None]:
    """At the end of the block, senders that have begun are waited for, unless it is left at once
    (by Ctrl-C, twice): then they end by themselves."""
    try:
        yield
    except Exception:
        senders.end()
        raise
    senders.end()
