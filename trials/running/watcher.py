"""The process that watches another one: nothing that that one has started outlives it.

    python -I -S watcher.py process PROCESS MARK GROUP
    python -I -S watcher.py program STATUS WORD...

**A process** that runs already: once it has ended, whatever has ended it, what it has started is
killed. That is known by a mark in its environment, which the programs that it starts have
inherited, and by its process group, which is killed if GROUP is not 0. An agent of a Ray node that
was just about to begin has no mark left in it: without its raylet it is killed too, in the session
of the process.

**A program**, which the watcher starts. It carries out requests, single letters on its standard
input; when that ends, its worker is gone, and everything is killed. It writes events to the file
descriptor STATUS, a line each:

    refused No such ...  the program could not be started
    suspended 41 45      these processes do nothing now
    ended 0              the program has ended: its exit code, or minus the number of a signal
    clear                no descendant of it is left; the watcher ends

It adopts processes that lose their parents, so that it finds those outside of the program's session
too. It is the child of a process that waits for its end, and then kills its descendants: Ray kills
the children of a worker that it ends, but not their children. So one of the worker and these two
stays to clear up.

It is a program by itself, which imports nothing of this package: it must start in milliseconds.
"""

import contextlib
import ctypes
import math
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

SUSPEND, RESUME, TERMINATE, KILL = b"s", b"r", b"t", b"k"
POLL_S = 0.02  # between two looks at whether the program has ended
SETTLE_S = 1.0  # the time that processes may take to be suspended, as where they wait for a disk
QUIET_S = 1.0  # nothing with a mark may be found for so long, until it is taken that all has ended
AGAIN_S, MOST_AGAIN_S = 0.005, 0.1
"""Between two looks at processes that were killed or suspended: at first, and at most."""
_PDEATHSIG, _CHILD_SUBREAPER = 1, 36  # options of prctl


def watch(name: str, *, group: bool) -> str:
    """Start the watcher of this process, and of its process group if it leads one. Returns a mark:
    what is started while it is among the environment variables ends with this process. It begins
    with the variable's `name`."""
    mark = f"{name}={os.getpid()}-{uuid.uuid4().hex}"
    words = ["process", str(os.getpid()), mark, str(int(group))]
    subprocess.run(  # noqa: S603 - a fixed program, which leaves its child alone at once
        [sys.executable, "-I", "-S", __file__, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={},  # no mark
        start_new_session=True,
        check=True,
    )
    return mark


def end_left(
    find: Callable[[], Iterable[int]], *, quiet_s: float = 0.0, limit_s: float = math.inf
) -> bool:
    """Kill the processes that are found, until none is for some seconds; true if in time."""
    began = quiet_since = time.monotonic()
    pause_s = AGAIN_S
    while True:
        found = list(find())
        for process in found:
            send(process, signal.SIGKILL)
        now = time.monotonic()
        if found:
            quiet_since = now
        elif now - quiet_since >= quiet_s:
            return True
        if now - began >= limit_s:
            return False
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, MOST_AGAIN_S)


def marked(mark: str, session: int) -> Iterator[int]:
    """The running processes with a mark, without this one; agents whose raylet is gone, too."""
    for process, (state, parent, of_session) in _processes().items():
        if process == os.getpid() or state in "ZXx":
            continue
        try:
            if mark.encode() in Path(f"/proc/{process}/environ").read_bytes():
                yield process
                continue
            command = Path(f"/proc/{process}/cmdline").read_bytes()
            is_agent = command.startswith(b"ray::") and b"Agent" in command
            if is_agent and of_session == session and not _is_raylet(parent):
                yield process
        except OSError:  # it has ended, or is another user's
            continue


def _is_raylet(process: int) -> bool:
    return b"raylet" in Path(f"/proc/{process}/cmdline").read_bytes()


def descendants(ancestor: int) -> dict[int, str]:
    """The states of the running processes below one, by their numbers."""
    processes = _processes()
    children: dict[int, list[int]] = {}
    for process, (_, parent, _) in processes.items():
        children.setdefault(parent, []).append(process)
    found: dict[int, str] = {}
    waiting = list(children.get(ancestor, ()))
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, ())
        state = processes[process][0]
        if state not in "ZXx":
            found[process] = state
    return found


def parent_of(process: int) -> int:
    """The parent of a process; 0 if it has ended."""
    facts = _facts(process)
    return 0 if facts is None else facts[1]


def _processes() -> dict[int, tuple[str, int, int]]:
    """The state, the parent and the session of each process."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - a thousand names, many times a second
        facts = _facts(int(name)) if name.isdigit() else None
        if facts is not None:
            found[int(name)] = facts
    return found


def _facts(process: int) -> tuple[str, int, int] | None:
    try:
        text = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    state, parent, _, session = text.rpartition(b")")[2].split()[:4]
    return state.decode(), int(parent), int(session)


def send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)


def adopt() -> None:
    """Make this process the parent of those below it that lose theirs."""
    _prctl(_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class ProgramWatcher:
    def __init__(self, status: int, words: list[str]) -> None:
        self._status = status
        os.set_inheritable(status, False)
        self._program = self._start(words)
        self._code: int | None = None
        self._is_terminating = False

    def keep(self) -> None:
        """Carry out requests until nothing is left of the program."""
        while self._goes_on():
            readable, _, _ = select.select([0], [], [], POLL_S)
            if readable and not self._carry_out(os.read(0, 4096)):
                break
        end_left(self._left)
        self._reap()
        self._tell("clear")

    def _goes_on(self) -> bool:
        self._reap()
        if self._code is None:
            return True
        return self._is_terminating and bool(descendants(os.getpid()))

    def _left(self) -> dict[int, str]:
        self._reap()
        return descendants(os.getpid())

    def _carry_out(self, letters: bytes) -> bool:
        if not letters or KILL in letters:
            return False
        for number in letters:
            letter = bytes([number])
            if letter == SUSPEND:
                self._suspend()
            elif letter == RESUME:
                self._signal_all(signal.SIGCONT)
            elif letter == TERMINATE:
                self._is_terminating = True
                self._signal_group(signal.SIGTERM)
                self._signal_all(signal.SIGCONT)
        return True

    def _start(self, words: list[str]) -> int:
        watcher = os.getpid()
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            _prctl(_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != watcher:
                os._exit(127)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.execvp(words[0], words)  # noqa: S606 - the command that the user states
        except OSError as error:
            self._tell(f"refused {error.strerror}")
        finally:
            os._exit(127)

    def _suspend(self) -> None:
        # Processes may start others meanwhile.
        self._signal_group(signal.SIGSTOP)
        give_up = time.monotonic() + SETTLE_S
        while True:
            states = descendants(os.getpid())
            running = [process for process, state in states.items() if state not in "Tt"]
            if not running or time.monotonic() > give_up:
                break
            for process in running:
                send(process, signal.SIGSTOP)
            time.sleep(AGAIN_S / 5)
        self._tell(" ".join(["suspended", *map(str, states)]))

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._program, number)

    def _signal_all(self, number: int) -> None:
        self._signal_group(number)
        for process in descendants(os.getpid()):
            send(process, number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return
                if process == self._program:
                    self._code = os.waitstatus_to_exitcode(status)
                    self._tell(f"ended {self._code}")

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the worker is gone
            os.write(self._status, f"{line}\n".encode())


def _watch_program(status: int, words: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    adopt()
    child = os.fork()
    if child:
        os.closerange(0, 3)  # the pipes must have no other ends than the watcher's
        os.close(status)
        os.waitpid(child, 0)
        end_left(lambda: descendants(os.getpid()))
        return
    adopt()
    watcher = ProgramWatcher(status, words)
    nothing = os.open(os.devnull, os.O_RDWR)
    for output in (1, 2):
        os.dup2(nothing, output)  # only the program holds its pipes open
    watcher.keep()


def _watch_process(process: int, mark: str, *, leads: bool) -> None:
    session = os.getsid(process)
    if os.fork():
        os._exit(0)
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(process)], [], [])
    if leads:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
    end_left(lambda: marked(mark, session), quiet_s=QUIET_S)


def main() -> None:
    kind, *rest = sys.argv[1:]
    if kind == "program":
        _watch_program(int(rest[0]), rest[1:])
    else:
        process, mark, group = rest
        _watch_process(int(process), mark, leads=group != "0")


if __name__ == "__main__":
    main()
