"""The senders of a study, as its driver starts and ends them, and the packages that they need.

The driver only starts a tracker's process and, at the end, waits for it for a while. The first
failure of a tracker is reported on stderr, and the study continues.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata

from hpsearch.errors import UserError
from hpsearch.store.connecting.url import in_memory, parse_url
from hpsearch.store.store import Store
from hpsearch.study_file.trackers import NamedTracker
from hpsearch.tracking.secrets import in_short
from hpsearch.tracking.sender import Sending

END_S = 30.0
"""How long the end of a study waits for its trackers, all together."""
KILLED_S = 5.0
"""How long it then waits for those that were killed: one that waits for a dead disk lives on."""
KEPT_BYTES = 65536
"""Of what a library prints."""

DISTRIBUTIONS = {
    "mlflow": ("mlflow-skinny", "mlflow"),
    "wandb": ("wandb",),
    "tensorboard": ("tensorboard",),
}
"""By tracker, the packages of which one must be installed. Folders of the same names, which these
trackers make beside a study file, are no packages."""

log = logging.getLogger("hpsearch")


def missing(trackers: Iterable[NamedTracker]) -> list[str]:
    """The trackers, by name, whose package is not installed."""
    kinds = [tracker.kind for tracker in trackers]
    return [kind for kind in kinds if not any(map(_is_installed, DISTRIBUTIONS[kind]))]


def refuse_missing(trackers: Iterable[NamedTracker]) -> None:
    """Check that all packages are installed; raises a `UserError` if one is not."""
    absent = missing(trackers)
    if absent:
        what = f"track: {', '.join(absent)} cannot be used: not installed here"
        raise UserError(what, f"{install(absent)} - or remove it from track in the study file")


def install(absent: Iterable[str]) -> str:
    """The command that installs what trackers need."""
    extras = ",".join(absent)
    return f'pip install ".[{extras}]" in the folder of hpsearch\'s sources'


def _is_installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


class Senders:
    """The senders of one study: none before `begin`.

    Args:
        folder: Its folder of checkpoints, a path or a URL.
        end_s: How long `end` waits, in seconds; None for as long as it takes.
        again: Whether to send what they were sent before, too.
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
        """Start them, unless that was done. The study must be in the database."""
        if self._senders is not None:
            return
        self._senders = []
        if self._trackers and in_memory(parse_url(self._store.url)):
            log.warning("track: nothing is sent to trackers, because the database is in memory")
            return
        for tracker in self._trackers:
            order = Sending(
                storage=self._store.url,
                study=self._study,
                folder=self._folder,
                tracker=tracker.model_dump(include={tracker.kind}),
                again=self._again,
            )
            try:
                self._senders.append(_Sender(tracker.kind, order))
            except OSError as error:
                log.warning("track: %s is left out: %s", tracker.kind, error)

    def end(self) -> list[str]:
        """Let them send what is left, and wait for that for a while. Returns for each tracker that
        everything was sent to where that is."""
        senders, self._senders = self._senders or [], []
        for sender in senders:
            sender.ask_to_end()
        until = None if self._end_s is None else time.monotonic() + self._end_s
        try:
            sent = [sender.wait(until) for sender in senders]
        finally:
            for sender in senders:
                sender.kill()
            killed = time.monotonic() + KILLED_S
            for sender in senders:
                sender.close(killed)
        return [text for text in sent if text is not None]


class _Sender:
    """One sender: its process, and threads that read what it says and wait for its end."""

    def __init__(self, kind: str, order: Sending) -> None:
        self._kind, self._study = kind, order.study
        self._sent: str | None = None
        self._has_complained = False
        self._noise = b""
        """The last of what its library has printed."""
        self._process = subprocess.Popen(
            # -P: a folder of the tracker's name beside the study file is not its package.
            [sys.executable, "-P", "-m", "hpsearch.tracking.sender"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is the driver's business
        )
        self._say(order.as_line())
        self._listeners = [_started(self._hear_all), _started(self._overhear)]
        self._has_ended = threading.Event()  # an interrupted `join` takes a thread for ended
        _started(self._wait_for_end)

    def ask_to_end(self) -> None:
        """Let it send the rest: nothing is committed any more."""
        self._say("end\n")

    def wait(self, until: float | None) -> str | None:
        """Wait for its end for a while. Returns where all was sent to; None if it was not."""
        left_s = None if until is None else max(0.0, until - time.monotonic())
        if not self._has_ended.wait(left_s) and self._sent is None:
            self._complain("it has not taken in the rest of the study in time")
        return self._sent

    def kill(self) -> None:
        """Kill the process if it has not ended."""
        if not self._has_ended.is_set():
            self._has_complained = True  # how it ends now is not its fault
            self._kill_group()

    def close(self, until: float) -> None:
        """Wait until a process that was killed has ended, or for a while."""
        self._has_ended.wait(max(0.0, until - time.monotonic()))
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died; its exit code tells
            self._process.stdin.write(line.encode())

    def _wait_for_end(self) -> None:
        self._process.wait()
        # What its library has left running, and at once: later, the number of the group may be
        # that of others.
        self._kill_group()
        for listener in self._listeners:
            listener.join(1.0)
        if self._sent is None:
            self._complain(f"its process ended with code {self._process.returncode}{self._said()}")
        self._has_ended.set()

    def _hear_all(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with suppress(ValueError):  # half a line of one that was killed
                    message = json.loads(line)
                    if "trouble" in message:
                        self._complain(message["trouble"])
                    self._sent = message.get("sent", self._sent)

    def _overhear(self) -> None:
        """Read what the library prints, so that it can go on, and keep the last of it."""
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while some := stream.read(KEPT_BYTES):
                self._noise = (self._noise + some)[-KEPT_BYTES:]

    def _said(self) -> str:
        """The last line that its library has printed, after a colon; empty if there is none."""
        text = self._noise.decode(errors="replace")
        if len(self._noise) == KEPT_BYTES:
            _, _, text = text.partition("\n")  # the first line is not whole
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f": {in_short(lines[-1])}" if lines else ""

    def _complain(self, what: str) -> None:
        if self._has_complained:
            return
        self._has_complained = True
        log.warning(
            "track: %s does not work: %s - the study does not wait for it; once it works: "
            "hpsearch export %s",
            self._kind,
            what,
            self._study,
        )

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
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
