"""The process between a worker and a program: no descendant of the program outlives it.

    python -I -S keeper.py STATUS WORD...

It starts the program, and carries out requests, single letters on its standard input. When that
input ends, the worker is gone, and everything is killed. It writes events to the file descriptor
STATUS, a line each:

    refused No such ...  the program could not be started
    suspended 41 45      these processes do nothing now
    ended 0              the program has ended: its exit code, or minus the number of a signal
    clear                no descendant of it is left; the keeper ends

It adopts processes that lose their parents, so that it finds those outside of the program's session
too.

The keeper is the child of a process that waits for its end, and then kills its descendants. Ray
kills the children of a worker that it ends, but not their children. So one of the worker and these
two stays to clear up.

It is a program by itself, which imports nothing of this package: it must start in milliseconds.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

SUSPEND, RESUME, TERMINATE, KILL = b"s", b"r", b"t", b"k"
POLL_S = 0.02
"""Between two looks at whether the program has ended."""
SETTLE_S = 1.0
"""The time that processes may take to be suspended, as where they wait for a disk."""
AGAIN_S = 0.005
"""Between two looks at processes that were killed or suspended."""
_PDEATHSIG, CHILD_SUBREAPER = 1, 36
"""Options of prctl."""


class Keeper:
    """The keeper of one program."""

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
        kill_below(os.getpid(), self._reap)
        self._tell("clear")

    def _goes_on(self) -> bool:
        self._reap()
        if self._code is None:
            return True
        return self._is_terminating and bool(descendants(os.getpid()))

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
        keeper = os.getpid()
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            prctl(_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
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


def descendants(ancestor: int) -> dict[int, str]:
    """The states of the running processes below one, by their numbers."""
    children: dict[int, list[int]] = {}
    states: dict[int, str] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - a thousand names, many times a second
        if not name.isdigit():
            continue
        try:
            text = Path(f"/proc/{name}/stat").read_bytes()
        except OSError:
            continue
        state, parent = text.rpartition(b")")[2].split()[:2]
        process = int(name)
        states[process] = state.decode()
        children.setdefault(int(parent), []).append(process)
    found: dict[int, str] = {}
    waiting = list(children.get(ancestor, ()))
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, ())
        if states[process] not in "ZXx":
            found[process] = states[process]
    return found


def kill_below(ancestor: int, reap: Callable[[], None]) -> None:
    """Kill all processes below one, until none is left."""
    pause_s = AGAIN_S
    while left := descendants(ancestor):
        for process in left:
            send(process, signal.SIGKILL)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.2)
        reap()
    reap()


def send(process: int, number: int) -> None:
    """Send a signal to a process, which may have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> None:
    """Keep the program that the arguments name."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prctl(CHILD_SUBREAPER, 1)
    status = int(sys.argv[1])
    child = os.fork()
    if child:
        os.closerange(0, 3)  # the pipes must have no other ends than the keeper's
        os.close(status)
        os.waitpid(child, 0)
        kill_below(os.getpid(), lambda: None)
        return
    prctl(CHILD_SUBREAPER, 1)
    keeper = Keeper(status, sys.argv[2:])
    nothing = os.open(os.devnull, os.O_RDWR)
    for output in (1, 2):
        os.dup2(nothing, output)  # only the program holds its pipes open
    keeper.keep()


if __name__ == "__main__":
    main()
