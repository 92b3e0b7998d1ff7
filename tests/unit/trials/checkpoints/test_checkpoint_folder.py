"""A folder of checkpoints, on a disk or in a store: the same promises everywhere."""

from __future__ import annotations

import os
import shutil

from support.files.checkpoints import filled, names_in, saved
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.folders import folder_at, split


def test_links_are_read_back_and_never_followed(folder, tmp_path):
    outside = tmp_path / "key"
    outside.write_text("private")

    def fill(draft):
        (draft / "step-1").mkdir()
        (draft / "step-1" / "model [1]").write_text("odd")
        (draft / "latest").symlink_to("step-1")
        (draft / "gone").symlink_to("nothing")
        (draft / "key").symlink_to(outside)

    source = saved(Checkpoints(folder), 2, fill)
    with opened(source) as checkpoint:
        files = checkpoint.files
        links = {
            each.name: os.fspath(each.readlink()) for each in files.iterdir() if each.is_symlink()
        }
        assert links == {"latest": "step-1", "gone": "nothing", "key": str(outside)}
        assert (files / "latest" / "model [1]").read_text() == "odd"
    assert folder_at(folder).remove(split(source)[1]) is None
    assert outside.read_text() == "private"


def test_a_place_lists_and_dissolves_and_writes_small_files(folder):
    where = folder_at(folder)
    assert where.entries() == []
    assert where.text("mark") is None
    where.write("mark", "first")
    where.write("mark", "ours – ünd")
    saved(Checkpoints(folder), 1, filled("a"))
    assert {"mark", "step-1"} <= set(where.entries())
    assert not [name for name in where.entries() if name.startswith(".writing")]
    assert where.text("mark") == "ours – ünd"
    for name in ("step-1", "nothing"):
        assert where.remove(name) is None
    where.dissolve("mark")
    assert "mark" not in where.entries()


def test_a_place_that_is_dissolved_is_gone_unless_something_else_is_in_it(tmp_path):
    for url in (tmp_path / "a", f"file://{tmp_path}/b"):
        where = folder_at(url)
        where.write("mark", "ours")
        where.write("notes", "somebody's")
        where.dissolve("mark")
        assert where.entries() == ["notes"]
        where.dissolve("notes")
        assert not list(tmp_path.iterdir())


def test_what_cannot_be_removed_is_said(tmp_path):
    (tmp_path / "trial-00001").write_text("a file in the place of a folder")
    assert isinstance(folder_at(tmp_path).remove("trial-00001"), NotADirectoryError)


def test_folders_of_the_training_code_are_no_checkpoints(tmp_path):
    folder = tmp_path / "trial"
    checkpoints = Checkpoints(folder)
    own = folder / "step-1"
    own.mkdir(parents=True)
    (own / "notes.txt").write_text("mine")
    for number in range(2, 7):
        checkpoints.reported(number, saved(checkpoints, number, filled("theirs")))
        checkpoints.recorded(number)
    assert (own / "notes.txt").read_text() == "mine"
    assert "step-2" not in names_in(folder)


def test_a_removal_that_was_cut_off_is_ended_by_the_next(tmp_path):
    folder = tmp_path / "trial"
    checkpoints = Checkpoints(folder)
    for number in (1, 2, 3):
        saved(checkpoints, number, filled("a"))
    shutil.rmtree(folder / "step-1" / "more")  # the manifest is removed last
    checkpoints.reported(4, saved(checkpoints, 4, filled("a")))
    checkpoints.recorded(4)
    assert "step-1" not in names_in(folder)
