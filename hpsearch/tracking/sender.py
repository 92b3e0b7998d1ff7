"""The process that sends a study to one tracker: `python -m hpsearch.tracking.sender`.

The first line of its input is a `Sending`. It then sends what is committed, until another line
comes or its input ends; then it sends the rest and ends too. Its output is one JSON object a line:
`{"trouble": TEXT}` when something fails for the first time, and `{"sent": TEXT}` at the end.
Nothing that the tracker's library prints gets there.

It is a process, and not a thread of the driver, because libraries of trackers hang, crash, start
threads and processes and set signal handlers. It reads the database and never writes to it.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from hpsearch.checkpoint_folders import TRACKING
from hpsearch.store.store import Store
from hpsearch.study_file.reading import parse
from hpsearch.study_file.trackers import NamedTracker, as_named
from hpsearch.tracking.mirror import Mirror, Sent
from hpsearch.tracking.secrets import in_short, without_secrets
from trials.checkpoints.folders import is_url

LONGEST_PAUSE_S = 60.0
"""Pauses between attempts that fail double up to this."""
SILENT_S = 60.0
"""A sending that takes longer is reported as trouble."""
GRACE_S = 45.0
"""How long a sender goes on whose driver is gone."""
NICENESS = 10
"""A tracker must not take time from trainings."""


@dataclass(frozen=True)
class Sending:
    """The order to a sender.

    Args:
        storage: The URL of the database, with its password.
        folder: Its folder of checkpoints; a path or a URL.
        tracker: The tracker with its options, as in a study file.
    """

    storage: str
    study: str
    folder: str
    tracker: dict[str, Any]
    again: bool = False

    def as_line(self) -> str:
        """The order as a line of JSON."""
        return json.dumps(asdict(self)) + "\n"


class _Channel:
    """The output of this process, which libraries cannot write to."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._has_complained = False

    def trouble(self, text: str) -> None:
        """Report a failure; only the first, since later ones most likely have its cause."""
        if not self._has_complained:
            self._has_complained = True
            self._print({"trouble": text})

    def sent(self, text: str) -> None:
        """Report where everything was sent to."""
        self._print({"sent": without_secrets(text)})

    def _print(self, message: dict[str, str]) -> None:
        with suppress(OSError):  # nobody reads it any more
            print(json.dumps(message), file=self._out, flush=True)


class _Watchdog:
    """Ends this process some time after its driver is gone, and reports sendings that take long."""

    def __init__(self, channel: _Channel) -> None:
        self._channel = channel
        self.ending = threading.Event()
        """Set once nothing is committed any more."""
        self._busy_since: float | None = None
        for work in (self._wait_for_end, self._watch):
            threading.Thread(target=work, daemon=True).start()

    def note_progress(self) -> None:
        """Something was sent: the tracker answers."""
        self._busy_since = time.monotonic()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While something is sent."""
        self.note_progress()
        try:
            yield
        finally:
            self._busy_since = None

    def _wait_for_end(self) -> None:
        while sys.stdin.buffer.readline():
            self.ending.set()
        self.ending.set()
        time.sleep(GRACE_S)
        _end_group()

    def _watch(self) -> None:
        while True:
            time.sleep(1.0)
            since = self._busy_since
            if since is not None and time.monotonic() - since > SILENT_S:
                self._channel.trouble(f"it has not answered for {SILENT_S:.0f} s")


def main() -> None:
    """Carry out the order that the input begins with."""
    channel = _Channel()
    order = Sending(**json.loads(sys.stdin.buffer.readline()))
    watchdog = _Watchdog(channel)
    with suppress(OSError):
        os.nice(NICENESS)
    try:
        sent = _send(order, watchdog, channel)
    except BaseException as error:  # noqa: BLE001 - reported to the driver, whatever it is
        channel.trouble(_text_of(error))
        sent = False
    sys.stderr.flush()
    os._exit(0 if sent else 1)  # threads of the library might keep the process


def _send(order: Sending, watchdog: _Watchdog, channel: _Channel) -> bool:
    """Send until the input has ended, and what is left then; return whether nothing is left."""
    named = NamedTracker.model_validate(as_named(order.tracker))
    with closing(Store.open(order.storage, create=False)) as store:
        record = store.find_study(order.study)
        base = Path(record.base or ".")
        spec = parse(record.spec, base=base)
        if base.is_dir():
            os.chdir(base)
        with _alone(order, named.kind, watchdog.ending):
            with watchdog.busy():
                library = importlib.import_module(f"hpsearch.bridges.{named.kind}.write")
                tracker = library.open_tracker(named.options)
            sent_before = Sent(order.folder, named.kind, tracker.target, again=order.again)
            mirror = Mirror(store, spec, sent_before, tracker, watchdog.note_progress)
            is_sent = _keep_up(mirror, tracker.interval_s, watchdog, channel)
            with watchdog.busy():
                tracker.close()
                mirror.save()
    if is_sent:
        channel.sent(f"{named.kind}: {tracker.target.strip()}")
    return is_sent


def _keep_up(mirror: Mirror, interval_s: float, watchdog: _Watchdog, channel: _Channel) -> bool:
    """Send what is new again and again, and once more at the end; return whether that worked."""
    pause_s = interval_s
    while True:
        is_last = watchdog.ending.is_set()
        try:
            with watchdog.busy():
                mirror.catch_up()
            pause_s = interval_s
            failed = False
        except Exception as error:  # noqa: BLE001 - each library has errors of its own
            channel.trouble(_text_of(error))
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
            failed = True
        if is_last:
            return not failed
        watchdog.ending.wait(pause_s)


@contextmanager
def _alone(order: Sending, kind: str, ending: threading.Event) -> Iterator[None]:
    """Wait until no other sender of the study sends to this tracker, such as that of a driver which
    was killed and resumed at once. Beside checkpoints behind a URL nothing is locked."""
    if is_url(order.folder):
        yield
        return
    folder = Path(order.folder, TRACKING)
    folder.mkdir(parents=True, exist_ok=True)
    with Path(folder, f"{kind}.lock").open("w") as lock:
        while not _locked(lock.fileno()):
            ended = ending.is_set()
            time.sleep(0.2)
            if ended and not _locked(lock.fileno()):
                raise TimeoutError("another process still sends this study to it")
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _text_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {in_short(str(error)) or 'no further word'}"


def _end_group() -> NoReturn:
    """End this process with all that its library has started."""
    with suppress(OSError):
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
