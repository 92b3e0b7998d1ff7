"""A program that measures what another one has trained (`measure` in a `task` part)."""

import json
import subprocess
from pathlib import Path
from typing import Any

from trials.contract import ProgramFailed
from trials.descriptions.command import harness_of
from trials.descriptions.command_line import CommandLine
from trials.descriptions.programs import Start
from trials.running.exit_codes import exit_text
from trials.running.reported import numbers_of
from trials.tasks.command.checkout import digests
from trials.tasks.command.program import own_environment

MEASURE_S = 900.0
"""The time that it may take."""


def measured(start: Start, base: Path) -> tuple[dict[str, float], str]:
    """The metrics that the task's `measure` prints of a trained folder, and a line for the log.
    Raises ProgramFailed if it prints none, or the trial has reached for them."""
    code, folder = start.setup.code, start.folder
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(folder):
            raise ProgramFailed(f"{path.name} in its folder is a link to outside: not measured")
    if code is not None:
        now = digests(base, harness_of(start.task, base))
        for name, _ in sorted(code.harness.items() ^ now.items()):
            raise ProgramFailed(f"{name} of the harness has changed: not measured")
    words = CommandLine(start.task["measure"]).filled(start.values)
    place = base / start.task.get("cwd", ".")
    try:
        done = subprocess.run(  # noqa: S603 - the command that the user states
            words,
            cwd=place,
            env=own_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=MEASURE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramFailed(f"its measure: {error}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it has printed no reason"]
        raise ProgramFailed(f"its measure ended with {exit_text(done.returncode)}: {said[-1]}")
    for line in reversed(done.stdout.splitlines()):
        if found := _numbers_in(line):
            return found, f"measured: {line}"
    raise ProgramFailed('its measure printed no line such as {"accuracy": 0.8}', done.stdout)


def _numbers_in(line: str) -> dict[str, float]:
    try:
        found: Any = json.loads(line)
        return numbers_of(found) if isinstance(found, dict) else {}
    except ValueError:
        return {}
