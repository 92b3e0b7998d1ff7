"""How the programs of this folder talk to the race: JSON lines in, JSON lines out.

Each program runs one method of another library, in an environment of its own, and imports nothing
of hpsearch. The first line is the setting. Every line after it asks for a job or tells a value, and
gets one line as its answer:

    {"space": {...}, "total": 52, "seed": 1, "trials": 40, "workers": 8}
                                      -> {"processor_s": 2.1}
    {"do": "ask"}                     -> {"job": {"trial": 0, "params": {...}, "until": 6}, ...}
                                         or {"job": null, ...}, to be asked again later
    {"do": "tell", "trial": 0, "level": 6, "value": 0.3, "ended": false}
                                      -> {"until": 17, ...} to continue up to there now,
                                         or {"until": null, ...} to free the worker

Every answer has `processor_s`: the seconds of processor time that the program has used. Values are
minimised. A trial that was freed may be asked for again, and continues from where it was.

A program is started in an empty folder, which is removed with all that its library writes there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Setting:
    """What a method is told before it begins."""

    space: dict[str, dict[str, Any]]
    """Parameters: `type` (float, int or categorical) with `low`, `high` and `log`, or with
    `choices`, which are texts."""
    total: int
    """The full budget of a trial, from 1."""
    seed: int
    """Below 2 ** 31."""
    trials: int
    """The budget, in mean full trials over all workers together."""
    workers: int
    """How many trials run in parallel."""


@dataclass(frozen=True)
class Job:
    """A trial to start, or to continue."""

    trial: int
    params: dict[str, Any]
    until: int
    """The level at which the method wants to be told a value."""


class Method(Protocol):
    """A method of a library."""

    def ask(self) -> Job | None:
        """The next job for a free worker; None to wait until something else happens."""

    def tell(self, trial: int, level: int, value: float, ended: bool) -> int | None:
        """Take the value at a level that was wanted, or where the trial ended, because it is
        complete or has diverged.

        Returns:
            The level up to which the trial continues now; None to free its worker.
        """


def serve(make: Callable[[Setting], Method]) -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints is not an answer

    def answer(**found: Any) -> None:
        found["processor_s"] = sum(os.times()[:4])
        answers.write(json.dumps(found, default=_plain) + "\n")
        answers.flush()

    method = make(Setting(**json.loads(sys.stdin.readline())))
    answer()
    for line in sys.stdin:
        message = json.loads(line)
        if message.pop("do") == "ask":
            job = method.ask()
            answer(job=None if job is None else vars(job))
        else:
            answer(until=method.tell(**message))


def _plain(value: Any) -> Any:
    """A number or text of numpy, as one of Python."""
    return value.item()
