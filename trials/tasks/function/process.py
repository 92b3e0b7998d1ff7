"""The process of training code, seen from its worker.

It is started anew, not forked from its worker: neither Ray nor CUDA survives that. On Linux it ends
with the thread that started it; elsewhere, at its next word to its worker.
"""

import os
import signal
import socket
import subprocess
import sys
import weakref
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trials.contract import ProcessEnded
from trials.running.exit_codes import exit_text
from trials.tasks.function.messages import Begin, Died, Preload

END_S = 10.0
"""The time that a process may take to end by itself: what `atexit` calls, and threads."""
_LOOK_S = 0.2
_MAIN = (
    "import sys; own, *path = sys.argv[3].splitlines(); sys.path[:] = [own, *path];"
    "from trials.tasks.function.child import main; sys.path[:] = path;"
    "main(int(sys.argv[1]), int(sys.argv[2]))"
)
_VMSTAT = Path("/proc/vmstat")

_running: "weakref.WeakSet[TrainingProcess]" = weakref.WeakSet()


def running() -> frozenset[int]:
    """The numbers of the processes of training code that this process has started."""
    return frozenset(each.number for each in list(_running) if each.is_alive)


def _path() -> str:
    """Where the process looks for modules, a folder a line: first that of this package, for what it
    imports itself; then where it looks for what the code imports, as this one, but in the current
    folder last. A file of the user's there may have the name of a module that the process needs."""

    def is_current(folder: str) -> bool:
        try:
            return Path(folder).samefile(Path())
        except OSError:  # it is not there
            return False

    own = str(Path(__file__).parents[3])
    elsewhere = [each for each in sys.path if not is_current(each)]
    current = [str(Path.cwd())] if len(elsewhere) < len(sys.path) else []
    return "\n".join([own, *dict.fromkeys([*elsewhere, own, *current])])


class TrainingProcess:
    """A process that trains one attempt at a time, in its main thread or that of its fork."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
            number = theirs.fileno()
            words = [str(number), str(os.getpid()), _path()]
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                [sys.executable, "-u", *flags, "-c", _MAIN, *words],
                stdin=subprocess.DEVNULL,
                pass_fds=(number,),
            )
        self.connection = Connection(ours.detach())
        self.number = self._process.pid
        self._kills = 0
        self._has_preloaded = False
        self._finalizer = weakref.finalize(self, _abandon, self._process, self.connection)
        _running.add(self)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def say(self, message: Any) -> None:
        """Send a message. A process that has ended does not hear it: `hear` says so."""
        with suppress(OSError):
            self.connection.send(message)

    def begin(self, order: Begin) -> None:
        """Begin an attempt, whose code prints where this process does now: to its standard error
        alone where `redirect_stdout` keeps its standard output for results."""
        self._kills = out_of_memory_kills()
        self.say(order)
        outputs = [2 if sys.stdout is sys.stderr else 1, 2]
        with suppress(OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as line:
            socket.send_fds(line, [b"\0"], outputs)

    def hear(self, timeout_s: float) -> Any:
        """The next message; None if there is none in time. Raises ProcessEnded."""
        try:
            message = self.connection.recv() if self.connection.poll(timeout_s) else None
        except (EOFError, OSError):
            raise self._end() from None
        if isinstance(message, Died):
            raise self._end_of(message.code)
        if message is not None:
            return message
        # Processes that it has forked may hold its end of the pipe open.
        if self.is_alive or self.connection.poll(0):
            return None
        raise self._end()

    def _end(self) -> ProcessEnded:
        self.wait(END_S)
        return self._end_of(self._process.returncode)

    def _end_of(self, code: int) -> ProcessEnded:
        is_killed = code == -signal.SIGKILL
        if is_killed and out_of_memory_kills() > self._kills:
            what = "the operating system has killed the process of the training: out of memory"
            return ProcessEnded(what, code, is_out_of_memory=True)
        return ProcessEnded(f"the process of the training ended with {exit_text(code)}", code)

    def preload(self, library: str) -> None:
        if not self._has_preloaded:
            self._has_preloaded = True
            self.say(Preload(library))

    def wait(self, timeout_s: float) -> None:
        """Wait for its end, and kill it if it takes too long."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Processes:
    """The process of one task, which stays from attempt to attempt."""

    def __init__(self) -> None:
        self._idle: TrainingProcess | None = None

    def take(self) -> TrainingProcess:
        process, self._idle = self._idle, None
        return process if process is not None and process.is_alive else TrainingProcess()

    def give_back(self, process: TrainingProcess, *, goes_on: bool) -> None:
        """Take back the process of an attempt that is over."""
        if goes_on:
            self._idle = process
        else:
            process.wait(END_S)


def _abandon(process: "subprocess.Popen[bytes]", connection: Connection) -> None:
    connection.close()
    with suppress(OSError):
        process.kill()
        process.wait()


def out_of_memory_kills() -> int:
    """How many processes the operating system has killed so far because memory ran out: in this
    control group if it is known, else on this machine; 0 where nothing says so."""
    for file in (*_events_of_group(), _VMSTAT):
        with suppress(OSError, ValueError):
            for line in file.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0


def _events_of_group() -> list[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    groups = [line.removeprefix("0::/") for line in lines if line.startswith("0::/")]
    return [Path("/sys/fs/cgroup", group, "memory.events") for group in groups]
