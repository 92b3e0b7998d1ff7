"""The way in which a configuration of a study is trained anew, and the commands for it."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from hpsearch.store.reading.queries import StudyHead
from hpsearch.study_file.reading import origin_of
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.descriptions.description import ASK


class Way(enum.Enum):
    """A way to train a configuration anew."""

    COMMAND = "hpsearch train"
    FILE = "python -m trials, from its settings as a file"
    OWN = "the user's own program, from its parameters"


def way_to_train(content: Mapping[str, Any]) -> Way | None:
    """The way for a study with this study file; None if it has no task."""
    task = content.get("task")
    if not isinstance(task, dict) or origin_of(content) is not None:
        return None
    if task.get("kind") in BUILT_IN:
        return Way.COMMAND
    is_foreign = "library" in task and task.get("kind") != COMMAND.kind
    return Way.OWN if is_foreign or task.get("kind") == ASK.kind else Way.FILE


def as_argument(name: str) -> str:
    """The name of a study as the last argument of a command in a shell."""
    quoted = shlex.quote(name)
    return f"-- {quoted}" if quoted.startswith("-") else quoted


def to_train(
    study: StudyHead, trial: int | None, suggested: Callable[[str], str]
) -> list[tuple[str, str]]:
    """Commands that train a trial's configuration anew, or print its parameters where only a
    program of the user's own trains it, each with what it does.

    Args:
        trial: Its number; None for the best one, whichever that is.
        suggested: Completes a command, such as ``best NAME``, so that it works where it is read.
    """
    way, name = way_to_train(study.content), as_argument(study.name)
    if way is Way.COMMAND:
        chosen = "" if trial is None else f"--trial {trial} "
        return [(suggested(f"train {chosen}{name}"), "trains it in full and keeps the model")]
    only = "" if trial is None else f'--where "number = {trial}" '
    if way is not Way.FILE:
        return [(suggested(f"best {only}--format json {name}"), "its parameters")]
    settings = suggested(f"best {only}--format yaml {name}")
    train = ("python -m trials best.yaml --out model", "trains them again")
    return [(f"{settings} > best.yaml", "its settings, as a file"), train]
