"""The process that sends a study to one tracker: `python -m hpsearch.running.tracking.sender`.

The first line of its input is a `Sending`. It sends what is committed until its input ends, then
the rest. Its output is one JSON object a line: `{"trouble": TEXT}` at the first failure, and
`{"sent": TEXT}` at the end. It is a process, because libraries of trackers hang, crash, start
threads and processes and set signal handlers. It reads the database and never writes to it.
"""

import fcntl
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hpsearch.running.checkpoint_folders import TRACKING
from hpsearch.running.tracking.mirror import Mirror, Sent
from hpsearch.running.tracking.secrets import in_short, without_secrets
from hpsearch.store.store import Store
from hpsearch.study_file.reading import parse
from hpsearch.study_file.trackers import NamedTracker, as_named
from trials.checkpoints.folders import is_url
from trials.foreign import in_words

INTERVAL_S = 2.0  # the time between two sendings
LONGEST_PAUSE_S = 60.0  # pauses between attempts that fail double up to this
GRACE_S = 45.0  # the seconds that a sender continues whose driver is gone
NICENESS = 10  # a tracker must not take time from trainings


@dataclass(frozen=True)
class Sending:
    """The order to a sender.

    Args:
        storage: The URL of the database, with its password.
        folder: The study's folder of checkpoints; a path or a URL.
        tracker: The tracker with its options, as in a study file.
        again: Whether to send everything once more.
    """

    storage: str
    study: str
    folder: str
    tracker: dict[str, Any]
    again: bool = False

    def as_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


class _Channel:
    """The output of this process, which libraries cannot write to."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._has_complained = False

    def trouble(self, error: BaseException) -> None:
        """Report a failure; only the first, since later ones most likely have its cause."""
        if not self._has_complained:
            self._has_complained = True
            self._print({"trouble": in_short(in_words(error))})

    def sent(self, text: str) -> None:
        self._print({"sent": without_secrets(text)})

    def _print(self, message: dict[str, str]) -> None:
        with suppress(OSError):  # nobody reads it any more
            print(json.dumps(message), file=self._out, flush=True)


def main() -> None:
    """Carry out the order that the input begins with."""
    channel = _Channel()
    order = Sending(**json.loads(sys.stdin.buffer.readline()))
    ending = threading.Event()
    threading.Thread(target=_wait_for_end, args=(ending,), daemon=True).start()
    os.nice(NICENESS)
    try:
        is_sent = _send(order, ending, channel)
    except BaseException as error:  # noqa: BLE001 - reported to the driver, whatever it is
        channel.trouble(error)
        is_sent = False
    os._exit(0 if is_sent else 1)  # threads of the library might keep the process


def _wait_for_end(ending: threading.Event) -> None:
    """Set `ending` once nothing is committed any more, and end this process if it then hangs."""
    sys.stdin.buffer.read()
    ending.set()
    time.sleep(GRACE_S)
    os._exit(1)


def _send(order: Sending, ending: threading.Event, channel: _Channel) -> bool:
    """Send until the input has ended, and what is left then; return whether nothing is left."""
    named = NamedTracker.model_validate(as_named(order.tracker))
    with closing(Store.open(order.storage, create=False)) as store:
        record = store.find_study(order.study)
        base = Path(record.base or ".")
        spec = parse(record.spec, base=base)
        if base.is_dir():
            os.chdir(base)
        with _alone(order, named.kind):
            library = importlib.import_module(f"hpsearch.bridges.{named.kind}.write")
            tracker = library.open_tracker(named.options)
            sent = Sent(order.folder, named.kind, tracker.target, again=order.again)
            mirror = Mirror(store, spec, sent, tracker)
            is_sent = _keep_up(mirror, ending, channel)
            tracker.close()
    if is_sent:
        channel.sent(f"{named.kind}: {tracker.target.strip()}")
    return is_sent


def _keep_up(mirror: Mirror, ending: threading.Event, channel: _Channel) -> bool:
    pause_s = INTERVAL_S
    while True:
        is_last = ending.is_set()
        try:
            mirror.catch_up()
        except Exception as error:  # noqa: BLE001 - each library has errors of its own
            channel.trouble(error)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
            if is_last:
                return False
        else:
            pause_s = INTERVAL_S
            if is_last:
                return True
        ending.wait(pause_s)


@contextmanager
def _alone(order: Sending, kind: str) -> Iterator[None]:
    """Wait until no other sender of the study sends to this tracker, such as a killed driver's.
    Beside checkpoints behind a URL nothing is locked."""
    if is_url(order.folder):
        yield
        return
    folder = Path(order.folder, TRACKING)
    folder.mkdir(parents=True, exist_ok=True)
    with Path(folder, f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
