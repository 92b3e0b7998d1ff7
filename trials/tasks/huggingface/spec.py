"""The `task` part of a task on texts, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.descriptions.models import KEY, Pretrained, Scratch, parse_model
from trials.tasks import splitting


@dataclass(frozen=True)
class TextSpec:
    """The part, parsed: paths are absolute.

    Args:
        train: The training data.
        validation: The validation data, or the fraction of the training data that it is.
        test: Data that the search never sees.
        fields: The values of the task's own fields: the names of the file's columns, most of them.
        model: The model to train, where no setting names another one.
        trusted: Whether code that a model brings may run.
        split_seed: Decides which samples a validation fraction picks.
    """

    train: Path
    validation: float | Path
    test: Path | None
    fields: Mapping[str, str]
    model: Pretrained | Scratch
    trusted: bool
    split_seed: int

    @property
    def facts(self) -> tuple[object, ...]:
        """What decides on the prepared data beside files, model and settings."""
        return self.split_seed, dict(self.fields)

    @property
    def encoder(self) -> Pretrained | Scratch:
        """The model whose tokenizer encodes the data."""
        return self.model

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path, fields: Mapping[str, str]) -> TextSpec:
        """Parse a part whose keys and types are right.

        Args:
            task: The part.
            base: The folder that relative paths start from.
            fields: The task's own fields, each with its value where the part states none.

        Raises:
            TaskError: The validation fraction or the model is not possible.
        """
        trusted = task.get(KEY, False)
        return TextSpec(
            train=base / task["train"],
            validation=splitting.parse(task, base),
            test=base / task["test"] if "test" in task else None,
            fields={name: task.get(name, default) for name, default in fields.items()},
            model=parse_model(task["model"], base, trusted),
            trusted=trusted,
            split_seed=task.get("split_seed", 0),
        )
