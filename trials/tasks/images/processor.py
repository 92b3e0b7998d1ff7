"""The size and brightness of the images that a pretrained model expects, by its image processor.

The processor's file is read, not run: this package scales and normalises images on the device.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.contract import TaskError
from trials.descriptions.models import Pretrained
from trials.tasks.huggingface.pretrained import loading

FILE = "preprocessor_config.json"
BICUBIC = 3  # pillow's number


@dataclass(frozen=True)
class Processing:
    """The images that a model expects. `side`: of its squares, in pixels; None if it reads any.
    `means`, `deviations`: of each channel, as shares of full brightness; None if not stated."""

    side: int | None
    means: tuple[float, ...] | None
    deviations: tuple[float, ...] | None


def read(model: Pretrained) -> Processing:
    """The settings of a model's image processor; the size may be in its configuration alone. Raises
    TaskError if the model cannot be found, or reads no squares."""
    from transformers import AutoConfig
    from transformers.image_processing_base import ImageProcessingMixin

    with loading(model):
        config = AutoConfig.from_pretrained(model.name, trust_remote_code=model.trusted)
    try:
        stated, _ = ImageProcessingMixin.get_image_processor_dict(model.name)
    except OSError:
        stated = {}  # it has none
    configured = {"size": getattr(config, "image_size", None)}
    side = _side(stated, model.name) or _side(configured, model.name)
    return _processing(stated, side)


def _processing(stated: dict[str, Any], side: int | None) -> Processing:
    means, deviations = stated.get("image_mean"), stated.get("image_std")
    if stated.get("do_normalize") is False:
        means, deviations = [0.0], [1.0]  # the model reads what is scaled, as it is
    if means is None or deviations is None:
        return Processing(side, None, None)
    # The processor scales before it normalises: by 1/255 to shares of full brightness, or else.
    factor = stated.get("rescale_factor", 1 / 255) if stated.get("do_rescale", True) else 1.0
    scale = 255 * factor
    of_shares = [tuple(value / scale for value in values) for values in (means, deviations)]
    return Processing(side, *of_shares)


def _side(stated: dict[str, Any], model: str) -> int | None:
    size = stated.get("crop_size") if stated.get("do_center_crop") else None
    if size is None:
        size = stated.get("size")
    if isinstance(size, dict):
        size = [size.get(name) for name in ("height", "width", "shortest_edge")]
    sides = set(size if isinstance(size, list | tuple) else [size]) - {None, 0}
    if len(sides) > 1:
        pixels = " x ".join(map(str, sorted(sides)))
        what = f"{model!r} reads images of {pixels} pixels; choose one that reads squares"
        raise TaskError.at("task.model", what)
    return int(sides.pop()) if sides else None


def write(folder: Path, side: int, means: tuple[float, ...], deviations: tuple[float, ...]) -> None:
    content = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": side, "width": side},
        "resample": BICUBIC,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(means),
        "image_std": list(deviations),
    }
    (folder / FILE).write_text(json.dumps(content, indent=1), encoding="utf-8")
