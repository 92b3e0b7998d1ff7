"""The `task` part of an image classification, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.contract import Problem, TaskError
from trials.descriptions.models import KEY, Pretrained, Scratch, parse_model
from trials.tasks import splitting

SIZE = 64
"""Side of the squares that the images of a folder are scaled to, where nothing else is stated."""


@dataclass(frozen=True)
class ImageSpec:
    """The part, parsed: paths are absolute, `size` is in pixels; None if the model decides on
    it."""

    train: Path
    validation: float | Path
    test: Path | None
    model: Pretrained | None
    size: int | None
    split_seed: int

    @property
    def side(self) -> int:
        """Of the squares that the images of a folder are scaled to, in pixels."""
        return SIZE if self.size is None else self.size

    @property
    def facts(self) -> tuple[object, ...]:
        """What decides on the prepared data beside the files."""
        return self.split_seed, self.side

    @property
    def encoder(self) -> None:
        """None: images are not encoded by a model."""
        return None

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path) -> ImageSpec:
        """Parse a part whose keys and types are right.

        Raises:
            TaskError: The size, the fraction or the model is not possible.
        """
        if task.get("size", SIZE) < 1:
            raise TaskError([Problem("task.size", f"must be at least 1 pixel, not {task['size']}")])
        return ImageSpec(
            train=base / task["train"],
            validation=splitting.parse(task, base),
            test=base / task["test"] if "test" in task else None,
            model=_model_of(task, base),
            size=task.get("size"),
            split_seed=task.get("split_seed", 0),
        )


def _model_of(task: Mapping[str, Any], base: Path) -> Pretrained | None:
    """The model that a part names, a local folder as an absolute path; None if it names none.

    Raises:
        TaskError: There is no such folder, or it holds no model; or a model is trusted that is not
            named.
    """
    if "model" not in task:
        if KEY not in task:
            return None
        what = "applies to a model, and this task names none; remove it, or add model"
        raise TaskError([Problem(f"task.{KEY}", what)])
    model = parse_model(task["model"], base, task.get(KEY, False))
    if isinstance(model, Scratch):
        what = "must be a hub id or a local folder; leave it out for a small network from scratch"
        raise TaskError([Problem("task.model", what)])
    return model
