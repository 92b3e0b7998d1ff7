"""The owner of a lease: a process, named by its user, host, id and start, as ids are used again."""

import getpass
import os
import re
import socket
from pathlib import Path

_OWNER = re.compile(r"(?P<shown>.*@(?P<host>[^@#]*):(?P<pid>\d+))#(?P<started>.*)")


def this_process() -> str:
    process = os.getpid()
    return f"{_user()}@{socket.gethostname()}:{process}#{_started(process) or ''}"


def person() -> str:
    """The user of this process, by name and host, for people."""
    return f"{_user()}@{socket.gethostname()}"


def shown(owner: str) -> str:
    """The name of an owner for people: user, host and process id."""
    found = _OWNER.fullmatch(owner)
    return owner if found is None else found["shown"]


def is_dead(owner: str) -> bool:
    """True if an owner was a process of this host that no longer runs; False for other hosts."""
    found = _OWNER.fullmatch(owner)
    if found is None or found["host"] != socket.gethostname():
        return False
    process = int(found["pid"])
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # somebody else's, who may have got its id
    started = _started(process)
    if not found["started"].isdigit() or started is None:
        return False
    return started != found["started"]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as a container may be started with
        return str(os.getuid())


def _started(process: int) -> str | None:
    """The clock ticks from the machine's start to a process's; None if unseen, empty once ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    _, _, rest = stat.rpartition(")")  # the second field, in brackets, may hold anything
    fields = rest.split()
    return "" if fields[0] in "ZX" else fields[19]  # the 22nd of all
