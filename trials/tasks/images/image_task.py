"""Image classification: a small residual network, or a pretrained model, learns classes."""

import collections
import hashlib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from trials.contract import Problem, TaskError
from trials.descriptions.images import IMAGE_CLASSIFICATION, ImageSettings
from trials.descriptions.models import KEY, Pretrained, Scratch, parse_model
from trials.settings import Settings
from trials.tasks.datasets import labels, remarks, tables
from trials.tasks.datasets.data_set import DataSet, DataSpec
from trials.tasks.datasets.splits import Mask
from trials.tasks.images import folder
from trials.tasks.images.folder import Bytes
from trials.tasks.workloads.trained_task import TrainedTask

SIZE = 64  # side of the squares that the images of a folder are scaled to, by default


@dataclass(frozen=True)
class ImageSpec(DataSpec):
    """The parsed part. `model`: the pretrained model; None for the small residual network. `size`:
    in pixels; None if the model decides."""

    model: Pretrained | None
    size: int | None

    @property
    def side(self) -> int:
        return SIZE if self.size is None else self.size

    @property
    def facts(self) -> tuple[object, ...]:
        return self.split_seed, self.side

    @classmethod
    def parse(cls, task: Mapping[str, Any], base: Path) -> Self:
        """Parse a valid part. Raises TaskError if the model is not possible."""
        model = _model_of(task, base)
        return cls(**DataSpec.shared(task, base), model=model, size=task.get("size"))


def _model_of(task: Mapping[str, Any], base: Path) -> Pretrained | None:
    if "model" not in task:
        return None
    model = parse_model(task["model"], base, task.get(KEY, False))
    if isinstance(model, Scratch):
        what = "must be a hub id or a local folder; leave it out for a small network from scratch"
        raise TaskError.at("task.model", what)
    return model


@dataclass(frozen=True)
class Images:
    """Images, shape (n, height, width, channels), the names of their classes, and sentences on
    what was left out."""

    pixels: Bytes
    names: list[str]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class ImageData:
    """Prepared data: plain arrays, which may be read-only.

    Args:
        train, validation: Images, shape (n, height, width, channels).
        train_labels, validation_labels: The numbers of their classes, int64, shape (n,).
        means, deviations: Of each channel over the training images, as shares of full brightness.
    """

    train: Bytes
    train_labels: npt.NDArray[np.int64]
    validation: Bytes
    validation_labels: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]


class ImageDataSet(DataSet[ImageSpec, Images]):
    TYPES = (ImageData,)
    UNIT = "image"

    def examples(self, path: Path, where: str) -> tuple[Images, list[Problem]]:
        if not path.is_dir():
            return _archive(path, where), []
        found = folder.files_in(path, where)
        pixels = folder.squares(found.paths, where, self.spec.side)
        return Images(pixels, found.names, found.notes), []

    def unfit(self, train: Images) -> list[Problem]:
        return labels.problems_with(train.names, "task.train")

    def misfits(self, train: Images, other: Images, where: str) -> Iterator[Problem]:
        yield from labels.unseen(train.names, other.names, where)
        shape, wanted = other.pixels.shape[1:], train.pixels.shape[1:]
        if shape != wanted:
            what = f"has images of shape {shape}, the training images have {wanted}; scale them"
            yield Problem(where, what)

    def strata(self, train: Images) -> list[str]:
        return train.names

    def keys(self, examples: Images, train: Images) -> list[bytes]:
        return [hashlib.sha256(image.tobytes()).digest() for image in examples.pixels]

    def notes(self, examples: Images) -> Iterator[str]:
        yield from examples.notes
        pixels = examples.pixels.reshape(len(examples.pixels), -1, examples.pixels.shape[-1])
        plain = int((pixels.min(axis=1) == pixels.max(axis=1)).all(axis=1).sum())
        if plain:
            yield f"images that show one colour alone: {plain} of {len(pixels)}"

    def remarks(self, train: Images) -> Iterator[tuple[str, str]]:
        for what in remarks.on_classes(collections.Counter(train.names), self.UNIT):
            yield "task.train", what

    def taken(self, examples: Images, mask: Mask) -> Images:
        return Images(examples.pixels[mask], super().taken(examples.names, mask))

    def encode(self, train: Images, validation: Images, settings: Settings) -> ImageData:
        names = tuple(labels.class_names(train.names))
        means: list[float] = (train.pixels.mean(axis=(0, 1, 2)) / 255).tolist()
        deviations: list[float] = (train.pixels.std(axis=(0, 1, 2)) / 255).tolist()
        return ImageData(
            train=train.pixels,
            train_labels=labels.numbers_of(train.names, names),
            validation=validation.pixels,
            validation_labels=labels.numbers_of(validation.names, names),
            labels=names,
            means=tuple(means),
            deviations=tuple(deviation or 1.0 for deviation in deviations),
        )


def _archive(path: Path, where: str) -> Images:
    if path.suffix.lower() != ".npz":
        what = f"there is no folder {path}, and it is not a .npz file"
        hint = "name a folder with one folder of images for each class, or a .npz file"
        raise TaskError.at(where, f"{what}; {hint}")
    tables.demand_plain(path, where)
    try:
        with np.load(path, allow_pickle=False) as archive:
            images, names = archive["images"], archive["labels"]
    except KeyError as error:
        what = f"{path} lacks an array: {error.args[0]}; name two images and labels"
        raise TaskError.at(where, what) from None
    except (ValueError, EOFError, OSError, AttributeError, zipfile.BadZipFile) as error:
        what = f"{path} cannot be read as NPZ: {str(error).strip()}; write it with numpy.savez"
        raise TaskError.at(where, what) from None
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or not images.size:
        what = f"images of {path} are {images.dtype} of shape {images.shape}"
        hint = "give bytes (uint8) of shape (n, height, width) or (n, height, width, channels)"
        raise TaskError.at(where, f"{what}; {hint}")
    if names.shape != (len(images),):
        what = f"labels of {path} have shape {names.shape} for {len(images)} images"
        raise TaskError.at(where, f"{what}; give each image one label")
    pixels = images if images.ndim == 4 else images[..., None]
    return Images(pixels, list(map(str, names.tolist())))


class ImageClassification(TrainedTask[ImageSpec]):
    DESCRIPTION = IMAGE_CLASSIFICATION
    SETTINGS = ImageSettings
    DATA = ImageDataSet
    WORKLOAD = "trials.tasks.images.image_model:ImageWorkload"

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base, ImageSpec.parse(task, base))

    def problems(self, remark: Callable[[str, str], None] | None = None) -> list[Problem]:
        try:
            return self.DATA(self._sized()).problems(remark)
        except TaskError as error:
            return error.problems

    def model_for(self, settings: Settings) -> Pretrained | None:
        return self.spec.model

    def spec_for(self, settings: Settings) -> ImageSpec:
        return self._sized()

    def _sized(self) -> ImageSpec:
        if self.spec.size is not None or self.spec.model is None:
            return self.spec
        from trials.tasks.images import processor

        return replace(self.spec, size=processor.read(self.spec.model).side)
