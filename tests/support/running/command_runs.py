"""What runs of commands report and print, and what is left of their processes."""

import shlex
from collections.abc import Callable
from pathlib import Path

from support.patience import wait_until
from trials.contract import Report
from trials.tasks.command.run import CommandRun

Start = Callable[..., CommandRun]
"""Starts an attempt of a command."""

Python = Callable[..., str]
"""Writes a program in Python, and returns the beginning of a command that runs it."""


def shell(line: str) -> str:
    """A command that lets a shell read a line."""
    return f"sh -c {shlex.quote(line)}"


GATED = """
def wait_before(epoch):
    while True:
        try:
            limit = int(open("limit").read())
        except FileNotFoundError:
            return
        if epoch <= limit:
            return
        open(f"waits-{epoch}", "w").close()
        time.sleep(0.005)
"""
"""The beginning of a program that goes no further than a `Gate` lets it."""


class Gate:
    """Holds programs that call `wait_before` of `GATED`, so that no test depends on their speed.

    Args:
        folder: Where they run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open_to(self, epoch: int) -> None:
        """Let programs pass up to an epoch, and wait before the next one."""
        draft = self._folder / "limit.draft"
        draft.write_text(str(epoch))
        draft.replace(self._folder / "limit")

    def open(self) -> None:
        """Let programs go on to their end."""
        (self._folder / "limit").unlink()

    def wait_for(self, epoch: int) -> None:
        """Wait until a program waits before an epoch."""
        wait_until((self._folder / f"waits-{epoch}").exists)


def reports_of(run: CommandRun) -> list[Report]:
    """Train to the end."""
    return [item for item in run if item is not None]


def first_of(run: CommandRun) -> Report:
    """The next report."""
    return next(item for item in run if item is not None)


def log_of(folder: Path, attempt: int = 1) -> str:
    return (folder / "logs" / f"{attempt}.log").read_text()


def state_of(process: int) -> str:
    """The letter of its state; Z where it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def is_gone(process: int) -> bool:
    return state_of(process) == "Z"
