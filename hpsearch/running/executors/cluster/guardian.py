"""Kills what a process has started, once that process has ended, whatever has ended it.

    python -I -S guardian.py PROCESS MARK GROUP

What the process has started is known by a mark in its environment, which the programs that it
starts have inherited, and by its process group, which is killed if GROUP is not 0. An agent of a
Ray node that was just about to begin has no mark left in it: without its raylet it is killed too,
in this session.

It is a program by itself, which imports nothing of this package: it must start in milliseconds.
"""

import os
import select
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

PAUSE_S = 0.05  # between two looks
LOOKS = 20  # nothing may be found for so many looks, until the guardian takes it that all has ended


def guard(name: str, *, group: bool) -> str:
    """Start the guardian of this process, and of its process group if it leads one.

    Returns: A mark: what is started while it is among the environment variables ends with this
        process. It begins with the variable's `name`.
    """
    mark = f"{name}={os.getpid()}-{uuid.uuid4().hex}"
    words = [str(os.getpid()), mark, str(int(group))]
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


def end_all(mark: str, session: int) -> bool:
    """Kill the processes with a mark, and agents in a session whose raylet is gone.

    Returns: Whether there were any.
    """
    found = False
    for name in os.listdir("/proc"):  # noqa: PTH208 - a thousand names
        if name.isdigit() and int(name) != os.getpid() and _is_ours(name, mark.encode(), session):
            found = True
            with suppress(OSError):
                os.kill(int(name), signal.SIGKILL)
    return found


def _is_ours(process: str, mark: bytes, session: int) -> bool:
    try:
        state, parent, of_session = _facts(process)
        if state in "ZX":
            return False
        folder = Path("/proc", process)
        if mark in (folder / "environ").read_bytes():
            return True
        command = (folder / "cmdline").read_bytes()
        is_agent = command.startswith(b"ray::") and b"Agent" in command and of_session == session
        return is_agent and b"raylet" not in Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:  # it has ended, or is another user's
        return False


def _facts(process: str) -> tuple[str, int, int]:
    text = Path("/proc", process, "stat").read_text("utf-8", "replace")
    state, parent, _, session = text.rpartition(")")[2].split()[:4]
    return state, int(parent), int(session)


def main() -> None:
    """Guard the process that the arguments name."""
    process, mark, leads = int(sys.argv[1]), sys.argv[2], sys.argv[3] != "0"
    session = os.getsid(process)
    if os.fork():
        os._exit(0)
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(process)], [], [])
    if leads:
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
    looks = 0
    while looks < LOOKS:
        looks = 0 if end_all(mark, session) else looks + 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
