"""Commands of real programs."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.running.command_runs import Gate
from trials import tasks
from trials.contract import Budget, Goal, Setup, Unit
from trials.tasks.command.run import CommandRun


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Starts an attempt of a command; all are closed in the end."""
    runs: list[CommandRun] = []

    def begin(
        run: str,
        total: float = 3.0,
        params: dict[str, Any] | None = None,
        resume_from: Path | str | None = None,
        attempt: int = 1,
        folder: Path | str | None = None,
        goal: Goal | None = None,
        **options: Any,
    ) -> CommandRun:
        budget = Budget(Unit.EPOCHS, total, (total,))
        setup = Setup(
            params=params or {},
            seed=5,
            budget=budget,
            folder=folder or tmp_path / "trial",
            resume_from=resume_from,
            goal=goal,
            attempt=attempt,
            log=tmp_path / "logs" / f"{attempt}.log",
        )
        task = tasks.load({"kind": "command", "run": run, **options}, tmp_path)
        made = task.start(setup, None)
        assert isinstance(made, CommandRun)
        runs.append(made)
        return made

    yield begin
    for each in runs:
        while not each.close():
            pass


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Holds programs of the test; open until it is told otherwise."""
    return Gate(tmp_path)


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., str]:
    """Writes a program in Python; the beginning of a command that runs it."""

    def write(text: str, name: str = "train.py") -> str:
        (tmp_path / name).write_text("import json, os, signal, sys, time\n" + text)
        return f"{shlex.quote(sys.executable)} {name}"

    return write
