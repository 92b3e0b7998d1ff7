"""The model that a `task` part names: a shape to build from scratch, or a pretrained one.

Nothing is loaded here. Some models bring Python files, which would run with the user's rights.
transformers refuses them, unless the study file says `trust_remote_code: true`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from trials.contract import TaskError
from trials.descriptions.description import Field
from trials.settings import nearest

KEY = "trust_remote_code"
TRUST = Field(
    KEY, (bool,), "true lets code that a model brings run, with your rights; false if missing"
)
"""The field of every kind of task that can name a pretrained model."""
CONFIG = "config.json"
ADAPTER_CONFIG = "adapter_config.json"  # peft's file in a folder of adapters
LONGEST_SHOWN = 60  # characters of a name that an error repeats


@dataclass(frozen=True)
class Scratch:
    """The shape of a small transformer with random weights."""

    layers: int = 2
    width: int = 128
    heads: int = 2
    feed_forward: int = 512
    vocabulary: int = 8192

    @classmethod
    def parse(cls, shape: Mapping[str, Any]) -> Self:
        """Check a mapping of sizes; `heads` and `feed_forward` follow the width by default. Raises
        TaskError if it has unknown or unfit sizes."""
        for name, value in shape.items():
            where = f"task.model.scratch.{name}"
            if name not in _SIZES:
                raise TaskError.at(where, f"is not a size of a model; {nearest(name, _SIZES)}")
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise TaskError.at(where, f"must be a whole number above 0, not {value!r}")
        width = shape.get("width", Scratch.width)
        sizes = {"heads": max(width // 64, 1), "feed_forward": 4 * width, **shape}
        heads = sizes["heads"]
        if width % heads:
            what = f"{heads} heads do not divide the width {width}; choose a divisor of it"
            raise TaskError.at("task.model.scratch.heads", what)
        return cls(**sizes)


_SIZES = {size.name: {"type": "integer", "minimum": 1} for size in fields(Scratch)}
_SHAPE = {"type": ["object", "null"], "properties": _SIZES, "additionalProperties": False}
MODEL: Mapping[str, Any] = {
    "minLength": 1,
    "properties": {"scratch": _SHAPE},
    "required": ["scratch"],
    "additionalProperties": False,
}
"""The keywords of JSON Schema for a model's name or shape."""


@dataclass(frozen=True)
class Pretrained:
    """A model with weights. `name`: a hub id, or the absolute path of a local folder. `trusted`:
    whether the model's own code may run."""

    name: str
    trusted: bool = False

    @property
    def folder(self) -> Path | None:
        path = Path(self.name)
        return path if path.is_dir() else None

    def __str__(self) -> str:
        return self.name


def parse_model(model: Any, base: Path, trusted: bool) -> Pretrained | Scratch:
    """The model that a study file names; the path of a local folder becomes absolute. Raises
    TaskError if it is neither a shape nor a name, or there is no such folder. `base`: the folder
    that a relative path starts from. `trusted`: whether the model's own code may run."""
    if model == "scratch":
        return Scratch()
    if isinstance(model, Mapping):
        shape = model.get("scratch") or {}
        if list(model) != ["scratch"] or not isinstance(shape, Mapping):
            what = "must be a name, or sizes such as scratch: {layers: 2, width: 128}"
            raise _refused(f"{what}, not {dict(model)!r}")
        return Scratch.parse(shape)
    hint = "write a folder's path or a hub id"
    if not model or not model.isprintable():
        raise _refused(f"{model[:LONGEST_SHOWN]!r} is not the name of a model; {hint}")
    folder = base / model
    if folder.is_dir():
        return _local(folder, trusted)
    is_path = model.startswith((".", "/", "~")) or model.count("/") > 1
    if is_path:
        raise _refused(f"no such folder: {folder}; {hint}")
    return Pretrained(str(model), trusted)


def _local(folder: Path, trusted: bool) -> Pretrained:
    if not (folder / CONFIG).is_file():
        raise _refused(f"{folder} has no config.json; name a folder that save_pretrained wrote")
    if (folder / ADAPTER_CONFIG).is_file():
        what = f"{str(folder)!r} holds adapters (LoRA), not a model"
        raise _refused(f"{what}; merge them into their base, as docs/final-training.md shows")
    return Pretrained(str(folder), trusted)


def _refused(what: str) -> TaskError:
    return TaskError.at("task.model", what)
