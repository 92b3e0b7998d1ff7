"""A folder of images: its files by class, and each of them as a square in colour."""

from __future__ import annotations

import collections
import functools
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from trials.contract import TaskError
from trials.data import files
from trials.tasks.datasets import tables
from trials.tasks.datasets.labels import listed

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Bytes = npt.NDArray[np.uint8]

_NOT_DECODED = {"BUFR", "EPS", "GRIB", "HDF5", "MPEG", "WMF"}
"""Formats that Pillow recognises and cannot decode, or gives to another program."""
_NOT_OURS = ("__MACOSX", "@eaDir")
"""Folders that other programs add, like all whose names begin with a point."""
_SPLITS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing"}
"""Names of folders that hold classes, and are none."""
_BITS_PER_SAMPLE = 258  # the number of a tag in TIFF


@dataclass(frozen=True)
class ClassFiles:
    """The images of a folder. `names`: the class of each: the first folder that it lies in.
    `notes`: sentences on what was left out."""

    paths: list[Path]
    names: list[str]
    notes: list[str]


def files_in(folder: Path, where: str) -> ClassFiles:
    """The images in the folders of a folder, a class each, however deep. Raises TaskError if there
    are none, or the folders are not those of classes."""
    paths, names = [], []
    loose, nested = 0, 0
    others: collections.Counter[str] = collections.Counter()
    for path in files.below(folder):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") or part in _NOT_OURS for part in parts):
            continue
        if path.suffix.lower() not in suffixes():
            others[path.suffix.lower() or "no ending"] += 1
        elif len(parts) == 1:
            loose += 1
        else:
            paths.append(path)
            names.append(parts[0])
            nested += len(parts) > 2
    classes = sorted(set(names))
    if not paths:
        hint = "put those of each class into a folder of its name, as .png, .jpg or another format"
        raise TaskError.at(where, f"{folder} has no images; {hint}")
    if nested == len(paths) and (len(classes) == 1 or _SPLITS.issuperset(map(str.lower, classes))):
        what = f"the folders in {folder} ({', '.join(classes)}) hold folders, and are not classes"
        raise TaskError.at(where, f"{what}; name {folder / classes[0]}")
    notes = []
    if others:
        endings = listed(sorted(others))
        notes.append(f"files that are not images are left out: {others.total()} ({endings})")
    if loose:
        notes.append(f"images in no class's folder are left out: {loose}")
    if nested:
        notes.append(f"images in a folder inside a class's folder belong to that class: {nested}")
    return ClassFiles(paths, names, notes)


@functools.cache
def suffixes() -> frozenset[str]:
    """The endings of all images that Pillow decodes."""
    from PIL import Image

    readable = {*_formats(), "MPO"}  # which is opened as JPEG
    suffixes = Image.registered_extensions()
    return frozenset(suffix for suffix, name in suffixes.items() if name in readable)


@functools.cache
def _formats() -> tuple[str, ...]:
    from PIL import Image

    Image.init()
    return tuple(name for name in Image.OPEN if name not in _NOT_DECODED)


def squares(paths: list[Path], where: str, side: int) -> Bytes:
    """Images in colour, shape (n, side, side, 3). Raises TaskError if some cannot be read."""
    found = np.empty((len(paths), side, side, 3), dtype=np.uint8)
    broken: dict[str, str] = {}
    for row, path in enumerate(paths):
        tables.demand_plain(path, where)
        try:
            found[row] = square(path, side)
        except Exception as error:  # noqa: BLE001 - Pillow raises anything for a broken file
            broken[str(path)] = " ".join(str(error).split()) or type(error).__name__
    if not broken:
        return found
    (first, why), *others = broken.items()
    what = f"{first} cannot be read as an image ({why.replace(first, 'it')})"
    if others:
        named = listed(name for name, _ in others)
        what = f"{what}, and neither can {len(others)} more: {named}"
    raise TaskError.at(where, f"{what}; fix or remove {'them' if others else 'it'}")


def square(path: Path, side: int) -> Bytes:
    """An image in colour, upright and scaled, shape (side, side, 3). Raises any exception
    if it cannot be read."""
    from PIL import Image, ImageOps

    with warnings.catch_warnings(), Image.open(path, formats=_formats()) as opened:
        warnings.simplefilter("ignore")  # oddities of a file that is read all the same
        upright = ImageOps.exif_transpose(opened)
        return np.asarray(_coloured(upright, opened).resize((side, side)))


def _coloured(image: Picture, opened: Picture) -> Picture:
    """An image of any mode in colour: what is transparent is white."""
    from PIL import Image

    if image.mode.startswith(("I", "F")):
        brightness = np.asarray(image, dtype=np.float64)
        shares = brightness / _full_brightness(brightness, opened)
        shares[brightness == image.info.get("transparency")] = 1.0
        return Image.fromarray((shares * 255).round().astype(np.uint8)).convert("RGB")
    key = image.info.get("transparency")
    if isinstance(key, tuple) and max(key) > 255:  # of 16 bits, of which 8 are read
        image.info["transparency"] = tuple(part >> 8 for part in key)
    if not image.has_transparency_data:
        return image.convert("RGB")
    if image.mode == "La":
        image = image.convert("LA")
    visible = image.convert("RGBA")
    white = Image.new("RGBA", visible.size, "white")
    return Image.alpha_composite(white, visible).convert("RGB")


def _full_brightness(brightness: npt.NDArray[np.float64], opened: Picture) -> float:
    """The number that stands for white in a grey image of more than 8 bits. Raises ValueError if
    nothing says which it is."""
    if opened.mode.startswith("I;16"):
        bits = getattr(opened, "tag_v2", {}).get(_BITS_PER_SAMPLE, (16,))
        return float(2 ** bits[0] - 1)
    if opened.format == "PPM" and opened.mode == "I":
        return 2.0**16 - 1
    # Integers of 32 bits and floats have no range of their own.
    low, high = float(brightness.min()), float(brightness.max())
    for white in (255.0, 65535.0) if opened.mode == "I" else (1.0, 255.0):
        if low >= 0 and high <= white:
            return white
    raise ValueError(f"its brightness goes from {low:g} to {high:g}: write it in 8 or 16 bits")
