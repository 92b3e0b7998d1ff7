"""The senders of a study: a thread for each tracker, which sends what is committed.

A sender reads the database and never writes to it. The driver starts it and, at the end, waits for
it for a while. The first failure of a tracker is reported on stderr, and the study continues; a
tracker that hangs is left behind.
"""

import fcntl
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import metadata
from pathlib import Path

from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes
from hpsearch.domain.plugins.door import OURS, named
from hpsearch.domain.plugins.offers import TrackerPlugin
from hpsearch.errors import UserError
from hpsearch.running.checkpoint_folders import TRACKING
from hpsearch.running.tracking.mirror import Mirror, Sent
from hpsearch.running.tracking.secrets import in_short, without_secrets
from hpsearch.store.connecting.url import in_memory, parse_url
from hpsearch.store.store import Store
from hpsearch.study_file.reading import parse
from hpsearch.study_file.trackers import TRACKERS, NamedTracker
from trials.checkpoints.folders import is_url
from trials.foreign import in_words

END_S = 30.0  # the seconds that the end of a study waits for its trackers, all together
INTERVAL_S = 2.0  # the time between two sendings
LONGEST_PAUSE_S = 60.0  # pauses between attempts that fail double up to this
NICENESS = 10  # a tracker must not take time from trainings

log = logging.getLogger("hpsearch")
_left_behind: list[threading.Thread] = []


def any_is_stuck() -> bool:
    """True if a sender that was left behind still runs, and holds up this process's end."""
    return any(thread.is_alive() for thread in _left_behind)


def missing(trackers: Iterable[NamedTracker]) -> list[str]:
    """The trackers, by name, whose package is not installed."""
    return [each.kind for each in trackers if not _is_complete(TRACKERS[each.kind])]


def refuse_missing(trackers: Iterable[NamedTracker]) -> None:
    """Raise UserError if the package of a tracker is not installed."""
    absent = missing(trackers)
    if absent:
        what = f"track: {', '.join(absent)} cannot be used: not installed here"
        raise UserError(what, f"{install(absent)} - or remove it from track in the study file")


def install(absent: Sequence[str]) -> str:
    """The commands that install what trackers need."""
    ours = [name for name in absent if TRACKERS[name].tracker.startswith(f"{OURS}.")]
    commands = []
    if ours:
        extras = ",".join(ours)
        commands.append(f'pip install ".[{extras}]" in the folder of hpsearch\'s sources')
    for name in absent:
        if name not in ours:
            commands.append(f"pip install {TRACKERS[name].packages[0]}")
    return ", and ".join(commands)


def _is_complete(tracker: TrackerPlugin) -> bool:
    return not tracker.packages or any(map(_is_installed, tracker.packages))


def _is_installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


class Senders:
    """The senders of one study, which `begin` starts. `end` waits for them for `end_s` seconds,
    None for no limit; `again` sends everything once more."""

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
            args = self._store.url, self._study, self._folder, tracker
            self._senders.append(_Sender(*args, again=self._again))

    def end(self) -> list[str]:
        """Let them send the rest, for a while. Returns the places that everything was sent to."""
        senders, self._senders = self._senders or [], []
        for sender in senders:
            sender.ending.set()
        until = None if self._end_s is None else time.monotonic() + self._end_s
        sent = [sender.wait(until) for sender in senders]
        return [text for text in sent if text is not None]


class _Sender:
    """Sends one study to one tracker until it is asked to end, and then the rest."""

    def __init__(
        self, storage: str, study: str, folder: str, tracker: NamedTracker, *, again: bool
    ) -> None:
        self._storage, self._study, self._folder = storage, study, folder
        self._tracker, self._again = tracker, again
        self._sent: str | None = None
        self._has_complained = False
        self.ending = threading.Event()
        name = f"tracker {tracker.kind}"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def wait(self, until: float | None) -> str | None:
        """Wait for its end for a while. Returns the place that all was sent to; None on failure."""
        try:
            self._thread.join(None if until is None else max(0.0, until - time.monotonic()))
        finally:
            if self._thread.is_alive():
                _left_behind.append(self._thread)
                self._complain("it has not taken in the rest of the study in time")
        return self._sent

    def _work(self) -> None:
        with suppress(OSError, AttributeError):  # of this thread alone, where the system can
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            self._send()
        except BaseException as error:  # noqa: BLE001 - each library has errors of its own
            self._complain(in_short(in_words(error)))

    def _send(self) -> None:
        kind = self._tracker.kind
        with closing(Store.open(self._storage, create=False)) as store, self._alone():
            record = store.find_study(self._study)
            base = Path(record.base or ".")
            spec = parse(record.spec, base=base, recorded=True)
            folder = base if base.is_dir() else Path()
            tracker = named(TRACKERS[kind].tracker)(self._tracker.options, folder.absolute())
            sent = Sent(self._folder, kind, tracker.target, again=self._again)
            if self._keep_up(Mirror(store, spec, sent, tracker)):
                tracker.close()
                self._sent = without_secrets(f"{kind}: {tracker.target.strip()}")

    def _keep_up(self, mirror: Mirror) -> bool:
        """Send until nothing is committed any more, and the rest; True if nothing is left."""
        pause_s = INTERVAL_S
        while True:
            is_last = self.ending.is_set()
            try:
                mirror.catch_up()
            except Exception as error:  # noqa: BLE001 - each library has errors of its own
                self._complain(in_short(in_words(error)))
                pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
            else:
                pause_s = INTERVAL_S
                if is_last:
                    return True
            if is_last:
                return False
            self.ending.wait(pause_s)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other sender of the study sends to this tracker, as that of a driver that
        took too long to end. Beside checkpoints behind a URL nothing is locked."""
        if is_url(self._folder):
            yield
            return
        folder = Path(self._folder, TRACKING)
        folder.mkdir(parents=True, exist_ok=True)
        with Path(folder, f"{self._tracker.kind}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _complain(self, what: str) -> None:
        if self._has_complained:
            return
        self._has_complained = True
        once = f"the study does not wait for it; once it works: hpsearch export {self._study}"
        log.warning("track: %s does not work: %s - %s", self._tracker.kind, what, once)


@contextmanager
def sending(senders: Senders) -> Iterator[None]:
    """Wait at the end for senders that have begun; after a second Ctrl-C they are left."""
    try:
        yield
    except Exception:
        senders.end()
        raise
    senders.end()
