"""The `task` part of an image classification, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.contract import TaskError
from trials.descriptions.models import KEY, Pretrained, Scratch, parse_model
from trials.tasks.datasets.spec import DataSpec

SIZE = 64
"""Side of the squares that the images of a folder are scaled to, where nothing else is stated."""


@dataclass(frozen=True)
class ImageSpec(DataSpec):
    """The part, parsed.

    Args:
        model: The pretrained model; None for the small residual network.
        size: In pixels; None if the model decides.
    """

    model: Pretrained | None
    size: int | None

    @property
    def side(self) -> int:
        """Of the squares that the images of a folder are scaled to, in pixels."""
        return SIZE if self.size is None else self.size

    @property
    def facts(self) -> tuple[object, ...]:
        return self.split_seed, self.side

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path) -> ImageSpec:
        """Parse a part whose keys and values are right.

        Raises:
            TaskError: The model is not possible.
        """
        return ImageSpec(
            **DataSpec.shared(task, base),
            model=_model_of(task, base),
            size=task.get("size"),
        )


def _model_of(task: Mapping[str, Any], base: Path) -> Pretrained | None:
    if "model" not in task:
        if KEY not in task:
            return None
        what = "applies to a model, and this task names none; remove it, or add model"
        raise TaskError.at(f"task.{KEY}", what)
    model = parse_model(task["model"], base, task.get(KEY, False))
    if isinstance(model, Scratch):
        what = "must be a hub id or a local folder; leave it out for a small network from scratch"
        raise TaskError.at("task.model", what)
    return model
