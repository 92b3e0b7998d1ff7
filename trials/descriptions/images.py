"""Image classification: its fields and settings."""

from dataclasses import dataclass

from trials.contract import LENGTHS, Unit
from trials.descriptions.description import (
    NETWORK_METRICS,
    Field,
    NetworkSettings,
    TaskDescription,
    by_name,
    files,
    split_seed,
)
from trials.descriptions.models import TRUST
from trials.settings import setting

METRICS = NETWORK_METRICS | {"loss", "accuracy", "macro_f1", "mcc"}

_FIELDS = (
    *files(
        "a folder with one folder of images for each class, or a .npz file",
        validation="such data",
        test="data that",
    ),
    Field(
        "model",
        (str,),
        "a model of transformers: a hub id or a local folder; if missing, a small network",
    ),
    TRUST,
    Field(
        "size",
        (int,),
        "the side in pixels of the squares that the images of a folder are scaled to",
        limits={"minimum": 1},
    ),
    split_seed("images"),
)


@dataclass(frozen=True)
class ImageSettings(NetworkSettings):
    dropout: float | None = setting(
        None, "Dropout probability before the last layer; null for no dropout.", low=0, high=0.95
    )
    depth: int = setting(
        3, "Residual stages; each one except the first halves the image.", low=1, high=8
    )
    width: int = setting(
        32, "Channels of the first stage; each further stage has twice as many.", low=1, high=1024
    )
    flip: bool = setting(False, "Mirror half of the training images, left to right.")
    shift: int = setting(0, "Move each training image by up to this many pixels.", low=0, high=1024)


IMAGE_CLASSIFICATION = TaskDescription(
    kind="image_classification",
    fields=by_name(_FIELDS),
    settings=ImageSettings.table(),
    metrics=METRICS,
    units=frozenset(LENGTHS) - {Unit.TOKENS},
)
