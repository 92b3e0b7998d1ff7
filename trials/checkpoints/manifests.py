"""What a checkpoint says about itself: its manifest, written with it and compared with its files.

A manifest names the files of the model (`files`) and those that only a run needs in order to
continue (`state`), each with its SHA-256. It also names the stretch of the run that the checkpoint
belongs to, the best checkpoint at that time, and the `links` of the folder, which an object store
would lose.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from trials.checkpoints.folders import folder_at, split
from trials.contract import Setup
from trials.disk import trees, whole_folders
from trials.disk.whole_folders import MANIFEST

FORMAT = 1
STATE = "state.pt"
"""The file of everything that the training loop saves except the model."""


class CheckpointError(Exception):
    """A checkpoint that is missing or damaged, with no older one to use instead."""


@dataclass(frozen=True, slots=True)
class Label:
    """What the manifest of a new checkpoint says besides its files.

    Args:
        level: How far the trial has trained, which names it.
        is_best: Whether it is the best so far.
        stretch: Names the run and the report before it; None if no other checkpoint continues
            the same stretch.
        state: The files that only a run needs, and not a reader of the weights.
    """

    level: float
    is_best: bool = False
    stretch: str | None = None
    state: Collection[str] = ()


def run_of(setup: Setup) -> str:
    """The name of a run, which is equal for two attempts only if one can continue the other.

    It is the same in every version, because checkpoints are recognised by it.
    """
    deciding = [dict(setup.params), setup.seed, repr(setup.budget)]
    text = json.dumps(deciding, sort_keys=True, default=repr)
    digest = hashlib.sha256(text.encode())
    return digest.hexdigest()[:16]


def stretch_of(setup: Setup, reported: float) -> str:
    """The name of the part of a run after the report at a level.

    It is equal for two attempts only if one can continue the other.
    """
    return f"{run_of(setup)} after {reported:.17g}"


def seal(draft: Path, label: Label, best_before: str | None) -> None:
    """Write the manifest of a new checkpoint.

    Raises:
        FileExistsError: It has a file of the manifest's name.
    """
    if os.path.lexists(draft / MANIFEST):
        what = f"a checkpoint's {MANIFEST} is written by hpsearch; give your file another name"
        raise FileExistsError(f"{what}, or put it into a folder inside the checkpoint")
    _publish_weights(draft)
    links = {}
    for entry in trees.entries(draft):
        if entry.is_link:
            links[entry.name] = os.fspath(entry.path.readlink())
    files: dict[str, str] = {}
    state: dict[str, str] = {}
    for name, digest in whole_folders.digests(draft).items():
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
    """Let everybody who may read a checkpoint read its weights: safetensors makes its files
    private, but another user may have to continue."""
    permissions = draft.stat().st_mode & 0o666
    for path in draft.rglob("*.safetensors"):
        if not path.is_symlink():
            path.chmod(permissions)


def verify(folder: Path, name: str | None = None, whole: bool = False) -> None:
    """Compare every file of a checkpoint with its manifest.

    Args:
        folder: Where its files are.
        name: What to call it in messages; None for the folder's own name.
        whole: Whether a run is to continue from it, and so needs the files of its state too.

    Raises:
        CheckpointError: A file is missing or was changed.
    """
    name = name or str(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        files: dict[str, str] = dict(manifest["files"])
        state: dict[str, str] = dict(manifest.get("state", {}))
    except FileNotFoundError:
        raise CheckpointError(f"{name} is not a checkpoint: it has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"{name} is damaged: its {MANIFEST} cannot be read") from None
    written = manifest.get("format")
    if written != FORMAT:
        raise CheckpointError(f"{name} has format {written}; this program reads {FORMAT}")
    expected = files | state if whole else files
    damage = whole_folders.damage(folder, expected)
    if damage is not None:
        raise CheckpointError(f"{name} is damaged: {damage}")


def check(source: Path | str, whole: bool = False) -> None:
    """Verify exactly this checkpoint, wherever it is; `opened` would use another one instead.

    Raises:
        CheckpointError: It is missing or damaged.
        FolderError: A URL that nothing here can read.
    """
    folder, name = split(source)
    with folder_at(folder).local(name) as files:
        verify(files, str(source), whole)
