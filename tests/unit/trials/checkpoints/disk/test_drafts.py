"""Folders in the making: those of dead processes go, those of living ones stay."""

import multiprocessing
import os
import signal
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from support.files.checkpoints import saved
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.disk import drafts
from trials.checkpoints.store_folder import UPLOAD


def upload_half(folder: str, told: Connection) -> None:
    """Begin a checkpoint for a store, and wait to be killed."""
    tempfile.tempdir = folder

    def fill(draft: Path) -> None:
        (draft / "weights").write_text("half")
        told.send(draft.name)
        signal.pause()

    saved(Checkpoints("memory://somewhere"), 1, fill)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_draft_of_a_killed_upload_goes_with_the_next_one_and_a_living_ones_stays(there):
    spawn = multiprocessing.get_context("spawn")
    names, processes = [], []
    for _ in range(2):
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=upload_half, args=(str(there), theirs), daemon=True)
        process.start()
        names.append(ours.recv())
        processes.append(process)
    dead, living = processes
    assert dead.pid is not None
    os.kill(dead.pid, signal.SIGKILL)
    dead.join()
    saved(Checkpoints("memory://elsewhere"), 1, lambda draft: None)
    assert [path.name for path in there.iterdir()] == [names[1]]
    living.kill()
    living.join()
    drafts.discard(drafts.private(UPLOAD))
    assert list(there.iterdir()) == []


def test_what_others_keep_among_temporary_files_is_left_alone(there):
    others = there / "checkpoint-500"
    others.mkdir()
    elsewhere = there / "elsewhere"
    elsewhere.mkdir()
    (there / f"{UPLOAD}planted").symlink_to(elsewhere)
    drafts.discard(drafts.private(UPLOAD))
    assert {path.name for path in there.iterdir()} == {
        others.name,
        elsewhere.name,
        f"{UPLOAD}planted",
    }


def test_a_draft_is_the_processs_own_until_it_is_discarded(tmp_path):
    draft = drafts.new(tmp_path, "a-")
    drafts.remove_abandoned(tmp_path, "a-")
    assert draft.is_dir()
    draft.rename(tmp_path / "whole")
    drafts.discard(draft)
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_a_temporary_folder_goes_with_its_context(there):
    with drafts.temporary("b-") as folder:
        assert folder.stat().st_mode & 0o077 == 0
        assert list(there.iterdir()) == [folder]
    assert list(there.iterdir()) == []
