"""The process of a worker: what its training has started ends with it, and a notice to end reaches
it.

Processes that are left when an attempt ends are ended by its worker, which has adopted any that
lost their parents. If the worker is killed, a watcher outside of it kills the group that it leads,
and the programs in whose environment it is named.
"""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hpsearch.running.executors.cluster import callers_folder
from trials.running.watcher import adopt, descendants, end_left, parent_of, watch
from trials.tasks.function import process as training

MARK = "HPSEARCH_WORKER"  # the environment variable that marks what a worker has started
ENDING_S = 1.0  # the time that processes may take to end by themselves after their attempt
KILL_S = 5.0  # the time in which those that were killed are waited for
_LOOK_S = 0.02
_SHOWN = 10
_SERVANTS = (b"resource_tracker", b"popen_loky", b"_inductor/compile_worker", b"wandb-core")
"""In the command lines of processes that a library starts once for all that a process does. They do
nothing between two attempts."""
_FORKSERVER = b"multiprocessing.forkserver"
"""In the command line of such a process, and of all that it forks."""


def let_children_die_with_us() -> None:
    """Let nothing that starts from now on outlive this process, on Linux."""
    callers_folder.restore()
    if not hasattr(os, "pidfd_open"):
        return
    if os.getpgid(0) != os.getpid():
        os.setpgid(0, 0)
    name, _, value = watch(MARK, group=True).partition("=")
    os.environ[name] = value
    adopt()


def started() -> frozenset[int]:
    """The processes that run below this one, without those that serve a library. None are known of
    a process that has other work, too."""
    if not os.environ.get(MARK, "").startswith(f"{os.getpid()}-"):
        return frozenset()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, ChildProcessError):  # not on Linux; it has none, as is usual
        return frozenset()
    return frozenset(each for each in descendants(os.getpid()) if not _serves(each))


def _serves(process: int) -> bool:
    trains = training.running()
    if process in trains:
        return True
    command = _command_of(process)
    if _FORKSERVER in command:
        return parent_of(process) in {os.getpid(), *trains}
    return any(word in command for word in _SERVANTS)


def _command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def end_those_left(before: frozenset[int] | None) -> str | None:
    """End the processes that an attempt has left, and say which. Those that ran `before` it stay;
    None if it has started none."""
    if before is None:
        return None
    _reap(before)
    left = started() - before
    if not left:
        return None
    gc.collect()  # a pool of processes ends with the object that has started it
    give_up = time.monotonic() + ENDING_S
    while left and time.monotonic() < give_up:
        time.sleep(_LOOK_S)
        left = started() - before
    programs = [Path(os.fsdecode(_command_of(each).split(b"\0")[0])).name for each in sorted(left)]
    if not programs:
        return None
    end_left(lambda: started() - before, limit_s=KILL_S)
    return f"its training left processes behind, which were ended: {', '.join(programs[:_SHOWN])}"


def _reap(before: frozenset[int]) -> None:
    """Forget the processes that have ended. Nobody else would ask for those that were adopted."""
    with suppress(AttributeError, ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in before:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)


def on_notice(call: Callable[[], None]) -> None:
    """Call a function, in a thread of its own, at SIGTERM. The main thread of a Ray worker is
    seldom in Python code, so a thread reads the byte that the interpreter writes then."""
    heard, hearing = os.pipe()
    os.set_blocking(hearing, False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    signal.set_wakeup_fd(hearing, warn_on_full_buffer=False)

    def listen() -> None:
        while number := os.read(heard, 1):
            if number[0] == signal.SIGTERM:
                call()

    threading.Thread(target=listen, name="notice", daemon=True).start()


def kill(process: int) -> None:
    """Kill a Ray worker of this machine that does not answer, even one that is stopped."""
    if b"ray::" in _command_of(process):
        with suppress(ProcessLookupError):  # it has ended
            os.kill(process, signal.SIGKILL)
