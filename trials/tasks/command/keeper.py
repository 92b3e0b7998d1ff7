"""The process between a worker and a program: no descendant of the program outlives it.

    python -I -S keeper.py STATUS WORD...

It starts the program and carries out what single letters on its standard input ask for. When that
input ends, the worker is gone, and everything is killed. What happens goes to the file descriptor
STATUS, a line each:

    started 41           the program's process
    refused 2 ...        it could not be started: errno, and what that means
    suspended 41 45      these processes do nothing now
    ended 0              the program has ended: its exit code, or minus the number of a signal
    left 2               so many other processes of it were still there, and are killed
    clear                no descendant of it is left; the keeper ends

On Linux it adopts processes that lose their parents, so that it finds those that have left the
session of the program too. Elsewhere it only knows the program's process group.

The keeper is the child of a process that waits for its end, and then kills what is left. Ray kills
the children of a worker that it ends, but not their children. So whatever is killed of the worker
and these two, one of them stays to clear up.

It is a program by itself, which imports nothing of this package: it must start in milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

SUSPEND, RESUME, TERMINATE, KILL = b"s", b"r", b"t", b"k"
"""The letters."""
SETTLE_S = 1.0
"""How long processes may take to be suspended, as where they wait for a disk."""
AGAIN_S = 0.005
"""Between two looks at processes that were killed or suspended."""
LONGEST_PAUSE_S = 0.2
_PDEATHSIG, _CHILD_SUBREAPER = 1, 36
"""Options of prctl."""


class Keeper:
    """Keeps one program."""

    def __init__(self, status: int, words: list[str]) -> None:
        self._status = status
        os.set_inheritable(status, False)
        self._program = self._start(words)
        self._code: int | None = None
        self._terminating = False

    def keep(self, wake: int) -> None:
        """Carry out requests until nothing is left of the program.

        Args:
            wake: A file descriptor that can be read when a child has ended.
        """
        self._tell(f"started {self._program}")
        while True:
            self._reap()
            if self._code is not None and not self._waits_for_others():
                break
            readable, _, _ = select.select([0, wake], [], [])
            if wake in readable:
                os.read(wake, 4096)
            if 0 in readable and not self._carry_out(os.read(0, 4096)):
                break
        others = self._alive()
        if self._code is not None and others and not self._terminating:
            self._tell(f"left {len(others)}")
        self._kill_all()
        self._tell("clear")

    def _waits_for_others(self) -> bool:
        return self._terminating and bool(self._alive())

    def _carry_out(self, letters: bytes) -> bool:
        if not letters or KILL in letters:
            return False
        for letter in letters:
            match bytes([letter]):
                case b"s":
                    self._suspend()
                case b"r":
                    self._resume()
                case b"t":
                    self._terminate()
        return True

    # ----------------------------------------------------------------------------- the program

    def _start(self, words: list[str]) -> int:
        keeper = os.getpid()
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            _prctl(_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(127)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.execvp(words[0], words)  # noqa: S606 - the command that the user states
        except OSError as error:
            self._tell(f"refused {error.errno} {error.strerror}")
        finally:
            os._exit(127)

    def _suspend(self) -> None:
        """Suspend every process, those that are started meanwhile too."""
        self._signal_group(signal.SIGSTOP)
        told: set[int] = set()
        give_up = time.monotonic() + SETTLE_S
        while True:
            states = self._alive()
            for process in states.keys() - told:
                _kill(process, signal.SIGSTOP)
            told |= states.keys()
            running = [process for process, state in states.items() if state not in "Tt"]
            if not running or time.monotonic() > give_up:
                break
            time.sleep(AGAIN_S / 5)
        self._tell(" ".join(["suspended", *map(str, states)]))

    def _resume(self) -> None:
        self._signal_group(signal.SIGCONT)
        self._signal(signal.SIGCONT)

    def _terminate(self) -> None:
        self._terminating = True
        self._signal_group(signal.SIGTERM)
        self._resume()

    def _kill_all(self) -> None:
        pause_s = AGAIN_S
        while self._alive():
            self._signal(signal.SIGKILL)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._reap()
        self._reap()

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._program, number)

    def _signal(self, number: int) -> None:
        for process in self._alive():
            _kill(process, number)

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self._program:
                self._code = os.waitstatus_to_exitcode(status)
                self._tell(f"ended {self._code}")

    def _alive(self) -> dict[int, str]:
        if not Path("/proc/self").exists():
            return {self._program: "S"} if self._code is None else {}
        return descendants(os.getpid())

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the worker is gone
            os.write(self._status, f"{line}\n".encode())


def descendants(ancestor: int) -> dict[int, str]:
    """The states of all processes below one, by their numbers; those that have ended are left
    out."""
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


def _kill(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _outlive(keeper: int, status: int) -> None:
    os.closerange(0, 3)  # its pipes must have no other ends than its own
    os.close(status)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.waitpid(keeper, 0)
    pause_s = AGAIN_S
    while left := _alive_below(os.getpid()):
        for process in left:
            _kill(process, signal.SIGKILL)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _alive_below(ancestor: int) -> dict[int, str]:
    return descendants(ancestor) if Path("/proc/self").exists() else {}


def main() -> None:
    """Keep the program that the arguments name."""
    _prctl(_CHILD_SUBREAPER, 1)
    status = int(sys.argv[1])
    child = os.fork()
    if child:
        _outlive(child, status)
        return
    _prctl(_CHILD_SUBREAPER, 1)
    wake, waking = os.pipe()
    for end in (wake, waking):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keeper = Keeper(status, sys.argv[2:])
    nothing = os.open(os.devnull, os.O_RDWR)
    for output in (1, 2):
        os.dup2(nothing, output)  # only the program holds its pipes open
    keeper.keep(wake)


if __name__ == "__main__":
    main()
