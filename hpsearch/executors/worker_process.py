"""The process of a worker: its children end with it, and a notice to end reaches it.

A training job may start processes of its own, for data or for several devices. If their worker is
killed, they would keep memory and GPUs from the next worker. So a worker leads a process group, and
a guardian outside of it waits for the worker's end, whatever its cause, and kills the rest of the
group. A process that left the group (`setsid`) is not killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

_GUARDIAN = """
import os, select, signal, sys
worker = int(sys.argv[1])
try:
    select.select([os.pidfd_open(worker)], [], [])
except ProcessLookupError:
    pass
try:
    os.killpg(worker, signal.SIGKILL)
except ProcessLookupError:
    pass
"""


def let_children_die_with_us() -> None:
    """Lead a process group from now on that does not outlive this process. Linux only."""
    if not hasattr(os, "pidfd_open"):
        return
    if os.getpgid(0) != os.getpid():
        os.setpgid(0, 0)
    subprocess.Popen(  # noqa: S603 - a fixed program
        [sys.executable, "-S", "-E", "-c", _GUARDIAN, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def on_notice(call: Callable[[], None]) -> None:
    """Call a function, in a thread of its own, when this process gets SIGTERM.

    The main thread of a Ray worker is seldom in Python code, where a handler of Python's would run.
    So a thread reads the byte that the interpreter writes as soon as the signal arrives."""
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
    try:
        if b"ray::" in Path(f"/proc/{process}/cmdline").read_bytes():
            os.kill(process, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended
