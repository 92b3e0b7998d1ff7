"""What runs of commands report and print, and what is left of their processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trials.contract import Report
from trials.tasks.command.run import CommandRun

Start = Callable[..., CommandRun]
"""Starts an attempt of a command."""

Python = Callable[..., str]
"""Writes a program in Python, and returns the beginning of a command that runs it."""


def reports_of(run: CommandRun) -> list[Report]:
    """Train to the end."""
    return [item for item in run if item is not None]


def first_of(run: CommandRun) -> Report:
    """The next report."""
    return next(item for item in run if item is not None)


def log_of(folder: Path, attempt: int = 1) -> str:
    return (folder / "logs" / f"{attempt}.log").read_text()


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
