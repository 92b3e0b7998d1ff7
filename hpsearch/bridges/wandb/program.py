"""The program of a W&B sweep: its command line, and the sweep that a script begins by itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpsearch.errors import UserError
from trials.contract import Problem
from trials.descriptions.sweep_command import MACROS, WITH_JSON
from trials.tasks.command.wandb_run import hooked

USUAL = ("${interpreter}", "${program}", "${args}")
"""The command of a sweep that states none. W&B's own begins with ${env}, which changes nothing."""
PATIENCE_S = 300.0
"""The time that a script may take to begin its sweep."""
_MACRO = re.compile(r"\$\{(\w+)\}")
_VARIABLE = re.compile(r"(\$\{envvar:\w+\})")


def command_of(document: Mapping[str, Any], problems: list[Problem]) -> str:
    """The command line of a sweep, with its macros, as W&B's agent would fill it in. What cannot be
    carried over is added to the problems."""
    program = document.get("program")
    command = document.get("command") or USUAL
    if not isinstance(command, list | tuple):
        problems.append(Problem("command", "must be a list of words, as W&B has it"))
        return ""
    if not isinstance(program, str) and "${program}" in command:
        what = "is missing; name the script that trains one configuration"
        problems.append(Problem("program", f"program {what}"))
        return ""
    words = list(_words(command, str(program), problems))
    return " ".join(words)


def _words(command: Sequence[Any], program: str, problems: list[Problem]) -> Iterator[str]:
    own = {"env": "/usr/bin/env", "interpreter": "python", "program": _escaped(program)}
    for at, word in enumerate(map(str, command)):
        macro = _MACRO.fullmatch(word)
        if macro is None:
            yield _escaped(word)
        elif macro[1] in own:
            yield own[macro[1]]
        elif macro[1] in MACROS or macro[1] in WITH_JSON:
            yield word
        else:
            known = ", ".join(f"${{{name}}}" for name in (*own, *MACROS, *WITH_JSON))
            problems.append(Problem(f"command[{at}]", f"{word} is not one of {known}"))


def _escaped(word: str) -> str:
    """A word as a study file's command has it: quoted, and braces of its own doubled."""
    parts = _VARIABLE.split(word)
    parts[::2] = [each.replace("{", "{{").replace("}", "}}") for each in parts[::2]]
    return shlex.quote("".join(parts))


def begins_sweep(path: Path) -> bool:
    """True for a script that begins a sweep of W&B, and not a study of Optuna."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "wandb.sweep" in text and ".optimize(" not in text


def sweep_of_script(path: Path) -> dict[str, Any]:
    """The sweep that a script begins with `wandb.sweep`: the script runs until `wandb.agent`.

    Raises:
        UserError: It fails, or begins none.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sweep.json"
        environment = hooked(os.environ, {"sweep": str(file)})
        try:
            ended = subprocess.run(  # noqa: S603 - the script that the user names
                [sys.executable, str(path)],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            what = f"{path} has not begun a sweep within {PATIENCE_S:g} s"
            raise UserError(what, "call wandb.sweep before anything that takes long") from None
        if not file.is_file():
            last = ended.stderr.strip().rpartition("\n")[2]
            why = f"ended with {last}" if ended.returncode else "begins no sweep"
            hint = "name the file of a sweep, or a script that calls wandb.sweep(...)"
            raise UserError(f"{path} {why}", hint)
        found = json.loads(file.read_text())
    sweep = found["sweep"] if isinstance(found["sweep"], dict) else {}
    if found.get("count") is not None:
        sweep["run_cap"] = found["count"]
    if not found.get("function"):
        return sweep
    return {**sweep, "program": str(path), "command": list(USUAL[:2])}
