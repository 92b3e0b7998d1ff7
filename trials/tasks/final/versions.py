"""The folders of a final training: one in the making, and the complete versions.

models/NAME/
  v1/                    config.json, model.safetensors, tokenizer files, training.json
  v2/                    the next one; a version is never overwritten
  .training-3f2a9c…/     one in the making, with its checkpoints: the same request continues it
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.disk import drafts, whole_folders
from trials.checkpoints.disk.whole_folders import MANIFEST, make_folder, removed_on_error
from trials.checkpoints.manifests import STATE
from trials.contract import TaskError

_CHECKPOINTS = "checkpoints"
_MODEL = "model-"
_OF_THE_RUN = (MANIFEST, STATE, "state.json")  # files that only a run needs, and not a model


@contextmanager
def workplace(home: Path, identity: str) -> Iterator[Path]:
    """The folder of a model in the making, for this process alone. Raises TaskError if another
    process works in it."""
    place = home / f".training-{identity}"
    make_folder(place)
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another process is training this in {place}; wait for it, or stop it"
            raise TaskError.at("--out", what) from None
        yield place


def checkpoints_in(place: Path) -> Path:
    return place / _CHECKPOINTS


@contextmanager
def model_in(place: Path, *, newest: bool) -> Iterator[Path]:
    """A copy of a finished run's model, to be completed and put in place."""
    checkpoints = Checkpoints(checkpoints_in(place))
    source = None if newest else checkpoints.best
    if source is None:
        source = checkpoints.last
    assert source is not None, "a finished run has saved itself"
    draft = drafts.new(place, _MODEL)
    with removed_on_error(draft):
        ignored = shutil.ignore_patterns(*_OF_THE_RUN)
        shutil.copytree(source, draft, ignore=ignored, dirs_exist_ok=True)
        yield draft


def put_next(model: Path, home: Path) -> Path:
    """Put a complete model in place as the next version, and return its folder."""
    while True:
        version = home / f"v{_greatest(home) + 1}"
        try:
            return whole_folders.put(model, version)
        except FileExistsError:
            continue  # another process has taken the number


def _greatest(home: Path) -> int:
    numbers = [path.name[1:] for path in home.glob("v*")]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)
