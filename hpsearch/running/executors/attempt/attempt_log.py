"""The output of a worker while it trains an attempt, as the log of that attempt.

For that time, the process's own file descriptors 1 and 2 are the log itself: the process and all
that it starts, in any language, print there, and the file of a killed process has all that it had
printed. A pipe would keep the last lines, and block a library that prints while it holds Python's
lock. A thread looks at the log's size now and then, and sends it to a store if it belongs there, or
to the driver where this machine does not have the study's folder.
"""

import ctypes
import json
import logging
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from hpsearch.domain import events as ev
from hpsearch.domain.numbers import in_unit
from hpsearch.running.executors.worker_config import WorkerConfig
from trials.checkpoints import folders
from trials.checkpoints.disk.log_file import EARLIER, LogFile
from trials.descriptions.command import COMMAND

LOOK_S = 0.2  # how often the size of a log is looked at
SEND_S = 30.0  # how often a log that has grown is sent to the store that it belongs to

log = logging.getLogger("hpsearch")
_libc = ctypes.CDLL(None)


Carry = Callable[[str, str], bool]
"""Takes a part of a log to its study's folder: the end of the file's name, and the whole text.
False if it has to be tried again."""


def keep(target: Path | str, part: str, text: str) -> bool:
    """Write a part of a log to its place at a path or URL; False, with a warning, if it failed."""
    folder, name = folders.split(f"{target}{part}")
    try:
        folders.folder_at(folder).write(name, text)
    # Each store has errors of its own, and none of them may end a training.
    except Exception as error:  # noqa: BLE001
        log.warning("the log %s was not written: %s", target, error)
        return False
    return True


class AttemptLog:
    """The log of one attempt. A log with a URL is written on this machine, and sent there now and
    then and when it is closed; `carry` takes one with a path in the same way to a study's folder
    on another machine. Raises OSError if it cannot be made."""

    def __init__(self, target: Path | str, carry: Carry | None = None) -> None:
        self._carry = carry
        self._draft: Path | None = None
        path = Path(target)
        if folders.is_url(target):
            self._draft = Path(tempfile.mkdtemp(prefix="hpsearch-log-"))
            path = self._draft / "log"
            self._carry = partial(keep, target)
        self.file = LogFile(path)
        self._sent = 0
        self._sent_at = time.monotonic()
        _watched.add(self)

    @property
    def path(self) -> Path:
        """The file that is written."""
        return self.file.path

    def look(self) -> None:
        """Keep the log small, and send it when that is due."""
        with suppress(OSError):  # a full disk: what is printed says so
            self.file.keep_small()
        if time.monotonic() - self._sent_at >= SEND_S:
            self._send()

    def _send(self) -> None:
        size = self.file.size
        if self._carry is None or size == self._sent:
            return
        self._sent_at = time.monotonic()
        with suppress(OSError):
            for part in (EARLIER, ""):
                path = Path(f"{self.path}{part}")
                if path.is_file() and not self._carry(part, path.read_text("utf-8", "replace")):
                    return
            self._sent = size

    def close(self) -> None:
        """Send the log to its place, and close it."""
        _watched.remove(self)
        with suppress(OSError):
            self.file.keep_small()
        self._send()
        self.file.close()
        if self._draft is not None:
            shutil.rmtree(self._draft, ignore_errors=True)


class _Watched:
    def __init__(self) -> None:
        self._logs: set[AttemptLog] = set()
        self._lock = threading.Lock()
        self._is_started = False

    def add(self, attempt_log: AttemptLog) -> None:
        """Look at a log from now on."""
        with self._lock:
            self._logs.add(attempt_log)
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._watch, name="attempt-logs", daemon=True).start()

    def remove(self, attempt_log: AttemptLog) -> None:
        """Look at a log no more; one that is looked at now is finished first."""
        with self._lock:
            self._logs.discard(attempt_log)

    def _watch(self) -> None:
        pause = threading.Event()  # nothing sets it
        while not pause.wait(LOOK_S):
            with self._lock:
                for each in self._logs:
                    each.look()


_watched = _Watched()


@contextmanager
def logged(
    target: Path | str, *, redirects: bool, carry: Carry | None = None
) -> Iterator[LogFile | None]:
    """The log of an attempt at a path or URL, as `AttemptLog`; None, with a warning, if nothing can
    be written there. This process prints into it meanwhile if it `redirects`."""
    try:
        attempt_log = AttemptLog(target, carry)
    except OSError as error:
        log.warning("there will be no log %s: %s", target, error)
        yield None
        return
    file = attempt_log.file
    try:
        with printing_into(file.descriptor) if redirects else nullcontext():
            yield file
    finally:
        attempt_log.close()


@contextmanager
def printing_into(descriptor: int) -> Iterator[None]:
    """Let this whole process, and its children, print into an open file meanwhile."""
    warnings.simplefilter("default", append=True)  # forgets what earlier attempts were warned of
    _flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in kept:
            os.dup2(descriptor, number)
        yield
    finally:
        _flush()
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    _libc.fflush(None)  # what libraries in C have printed


def note_beginning(log: LogFile, order: ev.Launch, device: str) -> None:
    """Note the place and the parameters of an attempt that begins."""
    where = f"on {platform.node()}, {device}, process {os.getpid()}"
    log.note(f"trial {order.trial}, attempt {order.attempt} begins {where}")
    log.note(f"parameters: {json.dumps(dict(order.params), default=str)}")
    if order.resume_from:
        log.note(f"continues from {order.resume_from}")


def note_end(
    log: LogFile,
    config: WorkerConfig,
    reached: float | None,
    ending: ev.Finished | ev.Stopped | ev.Failed,
    left: str | None = None,
) -> None:
    """Note the end of an attempt, whose last report was at the resource `reached`, and what was
    `left` of it. Only its study knows the reason of a stop."""
    if left is not None:
        log.note(left)
    at = "before its first report"
    if reached is not None:
        at = f"after its report at {in_unit(reached, config.budget.unit.value)}"
    match ending:
        case ev.Finished():
            log.note(f"ended {at}: {ending.why}")
        case ev.Stopped():
            why = "" if ending.why is None else f", {ending.why}"
            saved = "it has no checkpoint"
            if ending.checkpoint is not None:
                saved = f"its state is saved in {ending.checkpoint}"
            log.note(f"told to stop {at}{why}; {saved}")
        case ev.Failed():
            # The last lines of a command are in its log already.
            is_new = ending.details and config.task.get("kind") != COMMAND.kind
            details = f"\n{ending.details.rstrip()}" if is_new else ""
            log.note(f"failed {at}, {ending.kind.value}: {ending.text}{details}")
