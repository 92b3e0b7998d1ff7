"""Checkpoints with small files in them, and damage to them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.disk.whole_folders import MANIFEST
from trials.checkpoints.folders import folder_at
from trials.checkpoints.manifests import Label

Fill = Callable[[Path], object]


def drafted(checkpoints: Checkpoints, fill: Fill) -> Path:
    """A draft that is not committed yet."""
    with checkpoints.drafting() as draft:
        fill(draft)
    return draft


def saved(checkpoints: Checkpoints, level: float, fill: Fill, best: bool = False) -> Any:
    """A new checkpoint: its path or URL."""
    return checkpoints.commit(drafted(checkpoints, fill), Label(level, best))


def filled(text: str) -> Fill:
    """Writes weights that consist of a letter, and a file in a folder."""

    def fill(draft: Path) -> None:
        (draft / "weights").write_text(text * 100)
        (draft / "more").mkdir()
        (draft / "more" / "config").write_text("c")

    return fill


def content(source: Path | str) -> str:
    """The letter in the checkpoint that a run continues from."""
    with opened(source) as checkpoint:
        files = checkpoint.files
        assert (files / "more" / "config").read_text() == "c"
        return (files / "weights").read_text()[0]


def files_of(where: Path | str) -> tuple[Any, str]:
    """The file system of a path or URL, and the root in it."""
    files, root = fsspec.core.url_to_fs(str(where))
    return files, root


def harmed(where: Path | str, harm: str) -> None:
    """Damage a checkpoint."""
    files, root = files_of(where)
    weights = f"{root}/weights"
    match harm:
        case "truncated":
            files.pipe_file(weights, files.cat_file(weights)[:-1])
        case "flipped":
            data = bytearray(files.cat_file(weights))
            data[7] ^= 1
            files.pipe_file(weights, bytes(data))
        case "no manifest":
            files.rm_file(f"{root}/{MANIFEST}")
        case "file gone":
            files.rm_file(weights)
        case "empty":
            files.rm(root, recursive=True)
            files.makedirs(root)


def three_saved(folder: Path | str) -> tuple[Checkpoints, list[Any]]:
    """Three checkpoints with 300 bytes of weights and 600 of state each; the first is the best."""
    checkpoints = Checkpoints(folder, keep=9)
    paths = []
    for number in (1, 2, 3):
        draft = drafted(checkpoints, filled("w"))
        (draft / "weights").write_text("w" * 300)
        (draft / "state.pt").write_text("s" * 600)
        label = Label(number, is_best=number == 1, state=["state.pt"])
        paths.append(checkpoints.commit(draft, label))
    return checkpoints, paths


def names_in(folder: Path | str) -> list[str]:
    """The names of the checkpoints in a folder."""
    return sorted(name for name in folder_at(folder).names() if name.startswith("step-"))
