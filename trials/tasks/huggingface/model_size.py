"""The number of parameters of a model, by its files or its shape: nothing is loaded, nothing
downloaded."""

from __future__ import annotations

import math
from pathlib import Path

import safetensors

from trials.descriptions.models import Pretrained, Scratch

WEIGHTS = "model.safetensors"


def parameters(model: Pretrained | Scratch) -> int | None:
    """About how many parameters a model has; None if its weights are not on this machine."""
    if isinstance(model, Scratch):
        return _parameters_of(model)
    paths = _weights_of(model)
    if not paths:
        return None
    return sum(_parameters_in(path) for path in paths)


def _parameters_of(shape: Scratch) -> int:
    width = shape.width
    attention = 4 * width**2
    feed_forward = 2 * width * shape.feed_forward
    embeddings = shape.vocabulary * width
    return shape.layers * (attention + feed_forward) + embeddings


def _weights_of(model: Pretrained) -> list[Path]:
    if model.folder is not None:
        return sorted(model.folder.glob("*.safetensors"))
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(model.name, WEIGHTS)
    except HFValidationError:  # no such id is possible: loading the model will report that
        return []
    return [Path(found)] if isinstance(found, str) else []


def _parameters_in(path: Path) -> int:
    """The sizes of all tensors, as a file's header tells them; 0 if it is not what its name
    says."""
    try:
        with safetensors.safe_open(path, "numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    except (OSError, safetensors.SafetensorError):
        return 0
    return sum(map(math.prod, shapes))
