"""The senders of a study, as its driver starts and ends them, and the packages that they need.

The driver only starts a tracker's process and, at the end, waits for it for a while. The first
failure of a tracker is reported on stderr, and the study continues.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata

from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes
from hpsearch.errors import UserError
from hpsearch.running.tracking.sender import Sending
from hpsearch.store.connecting.url import in_memory, parse_url
from hpsearch.store.store import Store
from hpsearch.study_file.trackers import NamedTracker

END_S = 30.0  # the seconds that the end of a study waits for its trackers, all together

DISTRIBUTIONS = {
    "mlflow": ("mlflow-skinny", "mlflow"),
    "wandb": ("wandb",),
    "tensorboard": ("tensorboard",),
}
"""The packages of each tracker, one of which must be installed."""

log = logging.getLogger("hpsearch")


def missing(trackers: Iterable[NamedTracker]) -> list[str]:
    """The trackers, by name, whose package is not installed."""
    kinds = [tracker.kind for tracker in trackers]
    return [kind for kind in kinds if not any(map(_is_installed, DISTRIBUTIONS[kind]))]


def refuse_missing(trackers: Iterable[NamedTracker]) -> None:
    """Raise UserError if the package of a tracker is not installed."""
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
    """The senders of one study, which `begin` starts.

    Args:
        folder: Its folder of checkpoints, a path or a URL.
        end_s: The seconds that `end` waits; None for no limit.
        again: Whether to send everything once more.
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

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Start them after the driver's first tick, which has written that the study runs."""
        self.begin()

    def begin(self) -> None:
        """Start them, unless they have started. The study must be in the database."""
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
            self._senders.append(_Sender(tracker.kind, order))

    def end(self) -> list[str]:
        """Let them send the rest, and wait for that for a while. Returns the places that everything
        was sent to."""
        senders, self._senders = self._senders or [], []
        for sender in senders:
            sender.ask_to_end()
        until = None if self._end_s is None else time.monotonic() + self._end_s
        try:
            sent = [sender.wait(until) for sender in senders]
        finally:
            for sender in senders:
                sender.kill()
        return [text for text in sent if text is not None]


class _Sender:
    def __init__(self, kind: str, order: Sending) -> None:
        self._kind, self._study = kind, order.study
        self._sent: str | None = None
        self._has_complained = False
        self._process = subprocess.Popen(
            # -P: a folder of the tracker's name beside the study file is not its package.
            [sys.executable, "-P", "-m", "hpsearch.running.tracking.sender"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is the driver's business
        )
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died; its exit code tells
            self._process.stdin.write(order.as_line())
            self._process.stdin.flush()
        self._has_ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask_to_end(self) -> None:
        """Let it send the rest: nothing is committed any more."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def wait(self, until: float | None) -> str | None:
        """Wait for its end for a while. Returns the place that all was sent to; None on failure."""
        left_s = None if until is None else max(0.0, until - time.monotonic())
        if not self._has_ended.wait(left_s):
            self._complain("it has not taken in the rest of the study in time")
        return self._sent

    def kill(self) -> None:
        """Kill the process, if it has not ended, with everything that its library has started."""
        self._has_complained = True  # how it ends now is not its fault
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                message = json.loads(line)
                if "trouble" in message:
                    self._complain(message["trouble"])
                self._sent = message.get("sent")
        code = self._process.wait()
        if self._sent is None:
            self._complain(f"its process ended with code {code}")
        self._has_ended.set()

    def _complain(self, what: str) -> None:
        if self._has_complained:
            return
        self._has_complained = True
        once = f"the study does not wait for it; once it works: hpsearch export {self._study}"
        log.warning("track: %s does not work: %s - %s", self._kind, what, once)


@contextmanager
def sending(senders: Senders) -> Iterator[None]:
    """At the end of the block, wait for senders that have begun; after a second Ctrl-C they end by
    themselves."""
    try:
        yield
    except Exception:
        senders.end()
        raise
    senders.end()
