"""The `task` part of a task on texts, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.descriptions.models import KEY, Pretrained, Scratch, parse_model
from trials.tasks.datasets.spec import DataSpec


@dataclass(frozen=True)
class TextSpec(DataSpec):
    """The part, parsed.

    Args:
        fields: The values of the task's own fields: the names of the file's columns, most of them.
            A field that names several columns is here once for each, as ``text[0]``.
        model: The model to train, where no setting names another one.
        trusted: Whether code that a model brings may run.
        is_balanced: Whether rare classes weigh more in the loss.
    """

    kind: str
    fields: Mapping[str, str]
    model: Pretrained | Scratch
    trusted: bool
    is_balanced: bool

    @property
    def facts(self) -> tuple[object, ...]:
        return self.split_seed, dict(self.fields), self.is_balanced

    @property
    def encoder(self) -> Pretrained | Scratch:
        return self.model

    def columns(self, name: str) -> dict[str, str]:
        """The columns that one of the task's own fields names, by field."""
        found = {}
        for field_name, column in self.fields.items():
            first, _, _ = field_name.partition("[")
            if first == name:
                found[field_name] = column
        return found

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path, fields: Mapping[str, str]) -> TextSpec:
        """Parse a part whose keys and values are right.

        Args:
            base: The folder that relative paths start from.
            fields: The task's own fields, each with its value where the part states none.

        Raises:
            TaskError: The model is not possible.
        """
        trusted = task.get(KEY, False)
        return TextSpec(
            **DataSpec.shared(task, base),
            kind=task["kind"],
            fields=_own_fields(task, fields),
            model=parse_model(task["model"], base, trusted),
            trusted=trusted,
            is_balanced="class_weights" in task,
        )


def _own_fields(task: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, default in fields.items():
        value = task.get(name, default)
        if isinstance(value, list):
            for place, part in enumerate(value):
                found[f"{name}[{place}]"] = part
        else:
            found[name] = value
    return found
