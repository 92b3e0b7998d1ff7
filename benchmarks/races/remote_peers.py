"""Peers that decide in an environment and a process of their own: the programs of `peer_programs`.

The race and a program exchange JSON lines, as `peer_programs/conversation.py` describes. A program
names the level at which it wants to be told a value, so it is told at rungs only.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpsearch.search.rungs import Verdict
from races.curves import Task
from races.environments import python_of
from races.race import Job, Terms

PROGRAMS = Path(__file__).parent / "peer_programs"
PATIENCE_S = 10.0
"""How long a program may take to end."""
LAST_WORDS = 2000
"""How many characters of a program's errors are shown if it dies."""


class Died(Exception):
    """A program has ended before its race; the text has its last words."""


@dataclass(frozen=True)
class Program:
    """A program of `peer_programs`, and the environment that it runs in."""

    environment: str
    """A file of `peer_environments`, without its ending."""
    file: str
    options: tuple[str, ...] = ()


class RemotePeer:
    """A contender whose program runs as long as this context."""

    def __init__(self, program: Program, cache: Path, task: Task, seed: int, terms: Terms) -> None:
        self._command = [str(python_of(program.environment, cache)), "-E"]
        self._command += [str(PROGRAMS / program.file), *program.options]
        self._choices = _choices(task.space)
        self._setting = {
            "space": _with_texts(task.space, self._choices),
            "total": task.total,
            "seed": seed,
            "trials": terms.trials,
            "workers": terms.workers,
        }
        self._until: dict[int, int] = {}
        self._used_s = 0.0

    def __enter__(self) -> RemotePeer:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            self._errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                cwd=folder,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            stack.callback(self._end)
            self._say(self._setting)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def processor_s(self) -> float:
        """Seconds of processor time that the program has used."""
        return self._used_s

    def ask(self) -> Job | None:
        """The program's next job."""
        job = self._say({"do": "ask"})["job"]
        if job is None:
            return None
        trial = int(job["trial"])
        self._until[trial] = int(job["until"])
        return Job(trial, self._with_choices(job["params"]))

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """Continue to the level that the program wants, and ask it there."""
        if resource < self._until[trial]:
            return Verdict.CONTINUE
        until = self._tell(trial, resource, value, ended=False)
        if until is None:
            return Verdict.PAUSE
        self._until[trial] = until
        return Verdict.CONTINUE

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Tell the program the last value."""
        self._tell(trial, resource, value, ended=True)

    def _tell(self, trial: int, level: int, value: float, *, ended: bool) -> int | None:
        told = {"trial": trial, "level": level, "value": value, "ended": ended}
        until: int | None = self._say({"do": "tell", **told})["until"]
        return until

    def _say(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a line and return the answer to it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._death() from None
        line = self._process.stdout.readline()
        if not line:
            raise self._death()
        answer: dict[str, Any] = json.loads(line)
        self._used_s = answer["processor_s"]
        return answer

    def _death(self) -> Died:
        self._errors.seek(0)
        words = self._errors.read()[-LAST_WORDS:]
        return Died(f"{' '.join(self._command)} has died:\n{words}")

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        try:
            self._process.stdin.close()
            self._process.wait(PATIENCE_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def _with_choices(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with the choices themselves in place of their texts."""
        return {
            name: self._choices[name][int(value)] if name in self._choices else value
            for name, value in params.items()
        }


def _choices(space: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: list(text["choices"]) for name, text in space.items() if "choices" in text}


def _with_texts(
    space: Mapping[str, Mapping[str, Any]], choices: Mapping[str, list[Any]]
) -> dict[str, dict[str, Any]]:
    """The space with "0", "1", ... as choices: not every library takes numbers, truth or null."""
    texts = {}
    for name, text in space.items():
        unknown = set(text) - {"type", "low", "high", "log", "choices"}
        assert not unknown, f"the programs know nothing of {unknown} in {name}"
        texts[name] = dict(text)
        if name in choices:
            texts[name]["choices"] = [str(place) for place in range(len(choices[name]))]
    return texts
