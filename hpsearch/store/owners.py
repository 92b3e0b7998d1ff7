"""The owner of a lease: a process, named so that it cannot be mistaken for another one.

A host's name and a process id are not enough: two containers can share both, and ids are used
again. So an owner also carries the boot of its machine, its PID namespace, and when the process
started. People are shown the first part only.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_OWNER = re.compile(
    r"(?P<shown>.*@(?P<host>[^@#]*):(?P<pid>\d+))#(?P<boot>[\w-]+)/(?P<space>\d+)/(?P<started>\d*)"
)
"""An owner as it is stored, of a machine whose boot is known."""


@dataclass(frozen=True)
class Machine:
    """The scope in which process ids have a meaning: one PID namespace, until its machine is
    started again."""

    host: str
    boot: str  # an id of the time since the machine was started; empty if the system does not tell
    space: str  # an id of the PID namespace; 0 on systems that have none

    @classmethod
    def this(cls) -> Machine:
        """The one that this process runs on."""
        boot = _boot()
        try:
            space = str(Path("/proc/self/ns/pid").stat().st_ino)
        except OSError:  # Linux without a readable /proc: there may be several
            space = "0"
            if sys.platform != "darwin":
                boot = ""
        return cls(socket.gethostname(), boot, space)


def this_process() -> str:
    """This process as the owner of a lease."""
    here, process = Machine.this(), os.getpid()
    name = f"{_user()}@{here.host}:{process}"
    if not here.boot:
        return name
    started = _started(process) or ""
    return f"{name}#{here.boot}/{here.space}/{started}"


def shown(owner: str) -> str:
    """An owner for people: user, host and process id, where it has this form."""
    found = _OWNER.fullmatch(owner)
    return owner if found is None else found["shown"]


def is_dead(owner: str, here: Machine | None = None) -> bool:
    """True if an owner was a process of this very machine that certainly no longer runs.

    False if that is not certain: on another machine, after a restart, in another container.
    """
    found = _OWNER.fullmatch(owner)
    here = here or Machine.this()
    if found is None:
        return False
    machine = Machine(found["host"], found["boot"], found["space"])
    if machine != here:
        return False
    process = int(found["pid"])
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass  # somebody else's, who may have got its id
    stated = found["started"]
    started = _started(process)
    if not stated or started is None:
        return False
    return started != stated


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as a container may be started with
        return str(os.getuid())


def _boot() -> str:
    """An id of the time since this machine was started; empty if there is none."""
    if sys.platform == "darwin":
        asked = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
        try:
            found = subprocess.run(  # noqa: S603 - fixed
                asked, capture_output=True, text=True, check=False, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return found.stdout.strip()
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _started(process: int) -> str | None:
    """When a process started, in clock ticks since the machine did; None if that cannot be
    seen."""
    try:
        if str(Path("/proc/self").readlink()) != str(os.getpid()):
            return None  # /proc is that of another PID namespace
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    _, _, rest = stat.rpartition(")")  # the second field, in brackets, may hold anything
    fields = rest.split()
    return fields[19]  # the 22nd of all
