"""The manifest of a checkpoint: written with it, and compared with its files.

It names the files of the model (`files`) and those that only a run needs in order to continue
(`state`), each with its SHA-256. It also names the stretch of the run, the best checkpoint at that
time, and the `links` of the folder, which an object store would lose.
"""

import hashlib
import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from trials.checkpoints.checkpoint_folder import CheckpointFolder
from trials.checkpoints.disk import trees, whole_folders
from trials.checkpoints.disk.names import UnsafeName, component
from trials.checkpoints.disk.whole_folders import MANIFEST
from trials.checkpoints.folders import folder_at, split
from trials.contract import Setup

FORMAT = 1
STATE = "state.pt"  # the file of a training loop's state, without the model


class CheckpointError(Exception):
    """A checkpoint that is missing or damaged, with no older one to use instead."""


@dataclass(frozen=True, slots=True)
class Label:
    """The facts of a new checkpoint for its manifest."""

    level: float  # the resource of the trial, which names the checkpoint
    is_best: bool = False
    stretch: str | None = None  # the stretch that it belongs to; None if it is alone in its stretch
    state: Collection[str] = ()  # the files that only a run needs, and not a reader of the weights


def run_of(setup: Setup) -> str:
    """The name of a run, equal for two attempts only if one can continue the other. It must not
    change between versions, which recognise checkpoints by it."""
    deciding = [dict(setup.params), setup.seed, repr(setup.budget)]
    text = json.dumps(deciding, sort_keys=True, default=repr)
    digest = hashlib.sha256(text.encode())
    return digest.hexdigest()[:16]


def stretch_of(setup: Setup, reported: float) -> str:
    return f"{run_of(setup)} after {reported:.17g}"


def seal(draft: Path, label: Label, best_before: str | None, *, durable: bool = True) -> None:
    """Write the manifest of a new checkpoint, whose files are flushed meanwhile if it is to be put
    on a disk. Raises FileExistsError if the training code has written a file of that name."""
    if os.path.lexists(draft / MANIFEST):
        what = f"a checkpoint's {MANIFEST} is written by hpsearch; give your file another name"
        raise FileExistsError(f"{what}, or put it into a folder inside the checkpoint")
    _publish_weights(draft)
    links = {name: os.fspath(link.readlink()) for name, link in trees.links_in(draft).items()}
    files: dict[str, str] = {}
    state: dict[str, str] = {}
    for name, digest in whole_folders.digests(draft, durable=durable).items():
        group = state if name in label.state else files
        group[name] = digest
    manifest = {
        "format": FORMAT,
        "number": label.level,
        "stretch": label.stretch,
        "is_best": label.is_best,
        "best_before": best_before,
        "files": files,
        "state": state,
        "links": links,
    }
    whole_folders.seal(draft, manifest)


def _publish_weights(draft: Path) -> None:
    """Give weights the permissions of the checkpoint: safetensors makes its files private."""
    permissions = draft.stat().st_mode & 0o666
    for name, path in trees.files_in(draft).items():
        if name.endswith(".safetensors"):
            path.chmod(permissions)


def verify(folder: Path, name: str | None = None, whole: bool = False) -> None:
    """Compare every file of a checkpoint with its manifest. Raises CheckpointError if a file is
    missing or was changed. `name`: its name in messages; None for the folder's own. `whole`:
    whether its state is needed too, for a run to continue from it."""
    name = name or str(folder)
    try:
        manifest = whole_folders.manifest_of((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{name} is not a checkpoint: it has no {MANIFEST}") from None
    except UnsafeName as error:
        raise CheckpointError(f"{name} is damaged: in its {MANIFEST}, {error}") from None
    except ValueError:
        raise CheckpointError(f"{name} is damaged: its {MANIFEST} cannot be read") from None
    written = manifest.get("format")
    if written != FORMAT:
        raise CheckpointError(f"{name} has format {written}; this program reads {FORMAT}")
    files = manifest["files"]
    expected = files | manifest["state"] if whole else files
    damage = whole_folders.damage(folder, expected)
    if damage is not None:
        raise CheckpointError(f"{name} is damaged: {damage}")


def place_of(source: Path | str) -> tuple[CheckpointFolder, str]:
    """The folder that a checkpoint is in, and its name there. Raises CheckpointError if it is not
    the name of a checkpoint, FolderError if no installed library can read the URL."""
    folder, name = split(source)
    try:
        return folder_at(folder), component(name)
    except UnsafeName:
        raise CheckpointError(f"{source} is not a checkpoint") from None


def check(source: Path | str, whole: bool = False) -> None:
    """Verify a checkpoint by its path or URL. Raises CheckpointError if it is missing or damaged,
    FolderError if no installed library can read the URL."""
    folder, name = place_of(source)
    with folder.local(name) as files:
        verify(files, str(source), whole)
