"""A manifest says which files a checkpoint has, and shows damage to them."""

import dataclasses
import stat

import pytest

from support.files.checkpoints import filled, saved
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.disk.whole_folders import MANIFEST
from trials.checkpoints.manifests import CheckpointError, run_of, verify


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (lambda folder: (folder / "weights").write_text("A"), "weights was changed or cut short"),
        (lambda folder: (folder / "weights").unlink(), "weights is missing"),
        (lambda folder: (folder / "manifest.json").unlink(),
         r"is not a checkpoint: it has no manifest\.json"),
        (lambda folder: (folder / "manifest.json").write_text("{"),
         r"its manifest\.json cannot be read"),
        (lambda folder: (folder / "manifest.json").write_text('{"files": {}}'),
         "has format None; this program reads"),
    ],
)  # fmt: skip
def test_damage_is_named(tmp_path, harm, complaint):
    only = saved(Checkpoints(tmp_path), 1, filled("a"))
    harm(only)
    with pytest.raises(CheckpointError, match=complaint):
        verify(only)


def test_files_keep_their_modes_but_weights_are_as_readable_as_their_folder(tmp_path):
    modes = {"model.safetensors": 0o600, "key": 0o600, "run.sh": 0o755}

    def fill(folder):
        for name, mode in modes.items():
            (folder / name).write_text("a")
            (folder / name).chmod(mode)

    path = saved(Checkpoints(tmp_path), 1, fill)
    expected = {**modes, "model.safetensors": path.stat().st_mode & 0o666}
    assert {name: stat.S_IMODE((path / name).stat().st_mode) for name in modes} == expected


def test_a_file_of_the_manifests_name_is_refused(tmp_path):
    with pytest.raises(FileExistsError, match="give your file another name"):
        saved(Checkpoints(tmp_path), 1, lambda folder: (folder / MANIFEST).write_text("{}"))
    assert list(tmp_path.iterdir()) == []


def test_a_run_has_the_same_name_in_every_version(lab):
    setup = dataclasses.replace(
        lab.setup("unused", {"epochs": 2}), params={"lr": 0.1, "layers": [1, 2]}, seed=7
    )
    assert run_of(setup) == "795145d150c30591"
