"""The data of an image classification task: images of one shape in one array of bytes, from a folder or a .npz file."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trials.contract import Problem, TaskError
from trials.tasks import labels, splitting, tables
from trials.tasks.image_classification import ImageSpec

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
"""Of the files in a class's folder that are images."""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Images:
    """Images and the names of their classes.

    Args:
        pixels: Shape (n, height, width, channels).
        names: The class of each.
    """

    pixels: Bytes
    names: list[str]

    def rows(self, mask: splitting.Rows) -> Images:
        """The images where `mask` is true."""
        return Images(self.pixels[mask], [name for name, kept in zip(self.names, mask, strict=True) if kept])


@dataclass(frozen=True)
class ImageData:
    """Prepared data: plain arrays, which may be read-only.

    Args:
        train, validation: Images, shape (n, height, width, channels).
        train_labels, validation_labels: The number of each one's class, int64, shape (n,).
        labels: The names of the classes.
        means, deviations: Of each channel over the training images, as shares of full brightness.
        fingerprint: SHA-256 of images and labels.
    """

    train: Bytes
    train_labels: npt.NDArray[np.int64]
    validation: Bytes
    validation_labels: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    fingerprint: str


def prepare(spec: ImageSpec) -> ImageData:
    """Read, check and split.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = _read(spec)
    if problems or train is None or validation is None:
        raise TaskError(problems)
    names = labels.class_names(train.names)
    numbers = {name: number for number, name in enumerate(names)}
    digest = hashlib.sha256()
    for part in (train, validation):
        digest.update(part.pixels.tobytes() + "\0".join([str(part.pixels.shape), *part.names, ""]).encode())
    means = train.pixels.mean(axis=(0, 1, 2)) / 255
    deviations = train.pixels.std(axis=(0, 1, 2)) / 255
    return ImageData(
        train=train.pixels,
        train_labels=np.array([numbers[name] for name in train.names], dtype=np.int64),
        validation=validation.pixels,
        validation_labels=np.array([numbers[name] for name in validation.names], dtype=np.int64),
        labels=tuple(names),
        means=tuple(means.tolist()),
        deviations=tuple(deviation or 1.0 for deviation in deviations.tolist()),
        fingerprint=digest.hexdigest(),
    )


def problems_with(spec: ImageSpec) -> list[Problem]:
    """Everything wrong with the images that can be seen before training, the test images' problems too."""
    train, _, problems = _read(spec)
    if spec.test is not None:
        test, more = _images(spec, spec.test, "task.test")
        problems = problems + more + _misfits(train, test, "task.test")
    return problems


def on_test(spec: ImageSpec, data: ImageData) -> ImageData:
    """The data with the test images, which have no problems, in place of the validation images."""
    assert spec.test is not None
    test, _ = _images(spec, spec.test, "task.test")
    assert test is not None
    numbers = {name: number for number, name in enumerate(data.labels)}
    found = np.array([numbers[name] for name in test.names], dtype=np.int64)
    return replace(data, validation=test.pixels, validation_labels=found)


def _read(spec: ImageSpec) -> tuple[Images | None, Images | None, list[Problem]]:
    """The training and validation images, as far as they can be read, and what is wrong with them."""
    train, problems = _images(spec, spec.train, "task.train")
    if train is not None:
        problems = problems + labels.problems_with(train.names, "task.train")
    if isinstance(spec.validation, Path):
        validation, more = _images(spec, spec.validation, "task.validation")
        return train, validation, problems + more + _misfits(train, validation, "task.validation")
    if train is None or problems:
        return train, None, problems
    held_out = splitting.stratified(train.names, spec.validation, spec.split_seed)
    return train.rows(~held_out), train.rows(held_out), splitting.too_small(spec.validation, held_out)


def _misfits(train: Images | None, other: Images | None, where: str) -> list[Problem]:
    """What other images have that the training images do not agree with."""
    if train is None or other is None:
        return []
    problems = labels.unseen(train.names, other.names, where)
    shape, wanted = other.pixels.shape[1:], train.pixels.shape[1:]
    if shape == wanted:
        return problems
    return [*problems, Problem(where, f"has images of shape {shape}, the training images have {wanted}; scale them")]


def _images(spec: ImageSpec, path: Path, where: str) -> tuple[Images | None, list[Problem]]:
    """The images in a folder or file, or None where it has none to give; and its problems."""
    try:
        images = _folder(path, where, spec.side) if path.is_dir() else _archive(path, where)
    except TaskError as error:
        return None, error.problems
    return images, []


def _folder(path: Path, where: str, size: int) -> Images:
    """Images in a folder a class, in colour, scaled to squares."""
    from PIL import Image, UnidentifiedImageError

    files = [file for file in sorted(path.glob("*/*")) if file.suffix.lower() in SUFFIXES]
    if not files:
        what = (
            f"{path} has no images; put those of each class into a folder of its name, in {', '.join(SUFFIXES)} files"
        )
        raise TaskError([Problem(where, what)])
    pixels = np.empty((len(files), size, size, 3), dtype=np.uint8)
    for row, file in enumerate(files):
        tables.demand_plain(file, where, text=False)
        try:
            with Image.open(file) as image:
                pixels[row] = np.asarray(image.convert("RGB").resize((size, size)))
        except (UnidentifiedImageError, OSError):
            raise TaskError([Problem(where, f"{file} cannot be read as an image; mend or remove it")]) from None
    return Images(pixels, [file.parent.name for file in files])


def _archive(path: Path, where: str) -> Images:
    """The arrays `images` and `labels` of a .npz file."""
    if path.suffix.lower() != ".npz":
        what = f"no such folder: {path}" if not path.exists() else f"{path} is neither a folder nor a .npz file"
        raise TaskError([Problem(where, f"{what}; name a folder with a folder of images a class, or a .npz file")])
    tables.demand_plain(path, where, text=False)
    if not zipfile.is_zipfile(path):
        raise TaskError([Problem(where, f"{path} cannot be read as NPZ: it is no archive; write it with numpy.savez")])
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in ("images", "labels") if name not in archive]
            if missing:
                what = f"{path} has no array {missing[0]!r}, it has {', '.join(archive) or 'none'}; name it so"
                raise TaskError([Problem(where, what)])
            images, names = archive["images"], archive["labels"]
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        what = f"{path} cannot be read as NPZ: {str(error).strip()}; write it with numpy.savez"
        raise TaskError([Problem(where, what)]) from None
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or not images.size:
        what = f"images of {path} are {images.dtype} of shape {images.shape}; give bytes (uint8) of shape "
        raise TaskError([Problem(where, f"{what}(n, height, width) or (n, height, width, channels)")])
    if names.shape != (len(images),):
        what = f"labels of {path} have shape {names.shape} for {len(images)} images; give each image one label"
        raise TaskError([Problem(where, what)])
    pixels = images if images.ndim == 4 else images[..., None]
    return Images(pixels, [str(name) for name in names.tolist()])
