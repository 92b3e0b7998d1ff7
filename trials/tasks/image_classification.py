"""Image classification: a small residual network, or a pretrained model, learns which class an image belongs to.

This module holds the task's face. Its images are read in `image_data`, its network stands in `image_model`, and
pretrained ones in `image_pretrained`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trials.contract import Problem, Setup, TaskError
from trials.settings import Settings, setting
from trials.tasks import splitting
from trials.tasks.description import LOOP_METRICS, Field, TaskDescription
from trials.tasks.pretrained import KEY, TRUST, Pretrained
from trials.tasks.text_classification import Scratch, parse_model
from trials.tasks.trained import TrainedTask

if TYPE_CHECKING:
    from torch import nn

    from trials.export import Portable
    from trials.tasks.image_data import ImageData
    from trials.workload import Workload

METRICS = LOOP_METRICS | {"loss", "accuracy", "macro_f1", "mcc"}
"""All metrics of a report."""

SIZE = 64
"""Side of the squares that the images of a folder are scaled to, where the study file states none."""

_FIELDS = (
    Field(
        "train", (str,), "the training data: a folder with a folder of images a class, or a .npz file", required=True
    ),
    Field("validation", (float, str), "a fraction of the training data such as 0.15, or such data", required=True),
    Field("test", (str,), "data that the search never sees"),
    Field("model", (str,), "a model of transformers: a hub id or a local folder; a small network where missing"),
    TRUST,
    Field("size", (int,), "the side in pixels of the squares that the images of a folder are scaled to"),
    Field("split_seed", (int,), "which images a validation fraction picks; the same for every trial"),
)


@dataclass(frozen=True)
class ImageSettings(Settings):
    """The loop's settings, the shape of the network, and how training images are changed at random."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset(
        {"max_length", "bucketing", "batch_tokens", "model", "freeze_layers", "gradient_checkpointing"}
        | {"lora", "lora_rank", "lora_alpha", "lora_targets"}
    )

    learning_rate: float = setting(float, 1e-3, "Peak learning rate; the schedule multiplies it.", above=0, high=10)
    dropout: float | None = setting(
        float, None, "Dropout probability before the last layer; null is none.", low=0, high=0.95, nullable=True
    )
    depth: int = setting(int, 3, "Residual stages; each but the first halves the image.", low=1, high=8)
    width: int = setting(int, 32, "Channels of the first stage; each stage has twice those before.", low=1, high=1024)
    flip: bool = setting(bool, False, "Mirror half of the training images, left to right.")
    shift: int = setting(int, 0, "Move each training image by up to so many pixels.", low=0, high=1024)


@dataclass(frozen=True)
class ImageSpec:
    """The `task` part, parsed: paths are absolute, `size` is in pixels; None where the model is to tell it."""

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

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path) -> ImageSpec:
        """Parse a part whose keys and types are right.

        Raises:
            TaskError: The size or the fraction cannot be.
        """
        if task.get("size", SIZE) < 1:
            raise TaskError([Problem("task.size", f"must be at least 1 pixel, not {task['size']}")])
        return ImageSpec(
            train=base / task["train"],
            validation=splitting.parse(task, base),
            test=base / task["test"] if "test" in task else None,
            model=model_of(task, base),
            size=task.get("size"),
            split_seed=task.get("split_seed", 0),
        )


def model_of(task: Mapping[str, Any], base: Path) -> Pretrained | None:
    """The model that a part names, a local folder as an absolute path; None where it names none.

    Raises:
        TaskError: There is no such folder, or it holds no model; or there is a word of trust, and no model.
    """
    if "model" not in task and KEY in task:
        raise TaskError([Problem(f"task.{KEY}", "is about a model, and this task names none; remove it, or add model")])
    model = parse_model(task["model"], base, task.get(KEY, False)) if "model" in task else None
    if isinstance(model, Scratch):
        what = "must be a hub id or a local folder; leave it out for a small network from scratch"
        raise TaskError([Problem("task.model", what)])
    return model


class ImageClassification(TrainedTask):
    """The task."""

    DESCRIPTION = TaskDescription(
        kind="image_classification",
        fields={field.name: field for field in _FIELDS},
        settings=ImageSettings.table(),
        metrics=METRICS,
        tokens=False,
    )
    SETTINGS = ImageSettings
    spec: ImageSpec

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base)
        self.spec = ImageSpec.parse(task, base)
        self.model = self.spec.model

    def problems(self) -> list[Problem]:
        """What is wrong with the images."""
        from trials.tasks import image_data

        try:
            return image_data.problems_with(self._sized())
        except TaskError as error:
            return error.problems

    def _sized(self) -> ImageSpec:
        """What is stated, with the size that the model reads where none is."""
        if self.spec.size is not None or self.spec.model is None:
            return self.spec
        from trials.tasks import image_processor

        return replace(self.spec, size=image_processor.read(self.spec.model).side)

    def prepare(self, params: Mapping[str, Any]) -> ImageData:
        """Read, scale and split the images, or find them in the cache."""
        from trials.tasks import image_data, prepared

        ImageSettings.parse(params)
        spec = self._sized()
        recipe = prepared.Recipe(
            kind=self.DESCRIPTION.kind,
            sources=(spec.train, spec.validation),
            facts=(spec.split_seed, spec.side),
            model=None,
            types=(image_data.ImageData,),
            build=lambda: image_data.prepare(spec),
        )
        return prepared.prepare(recipe)

    def on_test(self, data: ImageData, settings: ImageSettings) -> ImageData:
        """The test images where the validation images were."""
        from trials.tasks import image_data

        return image_data.on_test(self._sized(), data)

    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """From `images`, bytes of shape (n, height, width, channels), to the logits of the classes."""
        from trials import predict
        from trials.export import Portable

        if self.spec.model is not None:
            from trials.tasks.image_pretrained import ImageScores

            return Portable(ImageScores(folder, type(model)), free=(0,))
        return Portable(predict.ImageClassifier(folder), free=(0,))

    def workload(self, data: ImageData, settings: ImageSettings, setup: Setup) -> Workload:
        """The network with its images."""
        if self.spec.model is not None:
            from trials.tasks.image_pretrained import PretrainedImageWorkload

            return PretrainedImageWorkload(self.spec.model, data, settings, setup)
        from trials.tasks.image_model import ImageWorkload

        return ImageWorkload(data, settings, setup)
