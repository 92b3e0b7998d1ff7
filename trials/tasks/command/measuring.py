"""A program that measures what another one has trained (`measure` in a `task` part)."""

import json
from pathlib import Path
from typing import Any

from trials.contract import ProgramFailed
from trials.descriptions.command import harness_of
from trials.descriptions.command_line import CommandLine
from trials.descriptions.programs import Start
from trials.running.exit_codes import exit_text
from trials.running.reported import numbers_of
from trials.tasks.command.checkout import digests, ended, said
from trials.tasks.command.program import own_environment


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
    done = ended(words, base / start.task.get("cwd", "."), own_environment())
    if done.returncode:
        why = said(done.stderr)[-1]
        raise ProgramFailed(f"its measure ended with {exit_text(done.returncode)}: {why}")
    for line in reversed(said(done.stdout)):
        if found := _numbers_in(line):
            return found, f"measured: {line}"
    raise ProgramFailed('its measure printed no line such as {"accuracy": 0.8}')


def _numbers_in(line: str) -> dict[str, float]:
    try:
        found: Any = json.loads(line)
        return numbers_of(found) if isinstance(found, dict) else {}
    except ValueError:
        return {}
