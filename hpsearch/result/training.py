"""The way in which a configuration of a study is trained anew, and words for its commands."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Mapping
from typing import Any

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
