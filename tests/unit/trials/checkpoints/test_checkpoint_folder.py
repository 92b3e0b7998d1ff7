"""A folder of checkpoints, on a disk or in a store: the same promises everywhere."""

import json
import os
import shutil
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from support.files.checkpoints import files_of, filled, names_in, saved, three_saved
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.disk.whole_folders import MANIFEST
from trials.checkpoints.folders import folder_at, split
from trials.checkpoints.manifests import CheckpointError, check
from trials.checkpoints.trimming import sizes_of, trim_ended, trim_waiting


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


SPOILT = {
    "state": {"../../precious": "0"},
    "links": {"../link": "/etc"},
    "files": {"../../precious": "0"},
}


def with_manifest(source: Path | str, **changes: object) -> None:
    """A checkpoint that somebody has written a manifest for."""
    files, root = files_of(source)
    manifest = json.loads(files.cat_file(f"{root}/{MANIFEST}"))
    files.pipe_file(f"{root}/{MANIFEST}", json.dumps({**manifest, **changes}).encode())


@pytest.mark.parametrize("group", SPOILT)
def test_a_manifest_that_names_what_is_outside_makes_its_checkpoint_damaged(folder, group):
    files, root = files_of(folder)
    checkpoints = Checkpoints(folder, keep=1)
    first = saved(checkpoints, 1, filled("a"), best=True)
    second = saved(checkpoints, 2, filled("b"))
    precious = f"{root.rpartition('/')[0]}/precious"
    files.pipe_file(precious, b"mine")
    before = sorted(files.find(root.rpartition("/")[0]))
    for checkpoint in (first, second):
        with_manifest(checkpoint, **{group: SPOILT[group]})
        with pytest.raises(CheckpointError, match=r"is damaged: in its manifest\.json, "):
            check(checkpoint)
    trim_waiting(second, first)
    trim_ended(first)
    folder_at(folder).take_state(split(first)[1])
    assert files.cat_file(precious) == b"mine"
    assert set(before) - set(files.find(root.rpartition("/")[0])) <= {
        path for path in before if "/step-2/" in path
    }


@pytest.mark.parametrize(
    "manifest",
    ["[1]", "7", "null", "[" * 100_000, '{"files": [], "format": 1}', '{"files": {"a": 7}}']
    + [f'{{"files": {{}}, "format": 1, "{group}": {value}}}'
       for group in ("state", "links") for value in ("7", '["a"]', '{"a": null}', '"../a"')],
)  # fmt: skip
def test_a_manifest_that_says_nothing_is_as_one_that_is_not_there(folder, manifest):
    only = saved(Checkpoints(folder), 1, filled("a"))
    files, root = files_of(only)
    files.pipe_file(f"{root}/{MANIFEST}", manifest.encode())
    with pytest.raises(CheckpointError, match="is damaged: its"):
        check(only)
    folder_at(folder).take_state("step-1")
    assert sizes_of(only, None).ended > 0


def test_links_are_made_below_no_other_link(tmp_path):
    folder = f"memory://{uuid.uuid4().hex}/trial"
    source = saved(Checkpoints(folder), 1, filled("a"))
    outside = tmp_path / "outside"
    outside.mkdir()
    with_manifest(source, links={"a": str(outside), "a/b": "x", "weights": "y"})
    with opened(source) as checkpoint:
        assert not (checkpoint.files / "weights").is_symlink()
    assert list(outside.iterdir()) == []


def test_keys_of_a_store_that_lead_outside_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = f"memory://{uuid.uuid4().hex}/trial"
    source = saved(Checkpoints(folder), 1, filled("a"))
    files, root = files_of(source)
    for key in ("../../evil", "more/../../evil", "//evil", "more//evil"):
        files.store[f"{root}/{key}"] = files.store[f"{root}/weights"]
    with opened(source) as checkpoint:
        found = {path.name for path in checkpoint.files.rglob("*")}
    assert found == {"weights", "more", "config", MANIFEST}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["..", "/etc/x", ".", "step-1/..", "", "anything"])
def test_a_pointer_that_names_anything_but_a_checkpoint_is_none(folder, name):
    checkpoints = Checkpoints(folder)
    source = saved(checkpoints, 1, filled("a"))
    files, root = files_of(folder)
    for pointer in ("last", "best"):
        path = Path(root, pointer)
        if path.is_symlink():
            path.unlink()
            path.symlink_to(name or "nothing")
        else:
            files.pipe_file(f"{root}/{pointer}", name.encode())
    assert (checkpoints.best, checkpoints.last) == (None, None)
    assert checkpoints.newest_of("none") is None
    with pytest.raises(CheckpointError), opened(f"{folder}/last"):
        pass
    check(source)


@pytest.mark.parametrize("name", ["..", "../trial/step-1", "/etc", ""])
def test_the_best_before_is_a_checkpoint_in_the_same_folder(folder, name):
    checkpoints = Checkpoints(folder)
    first = saved(checkpoints, 1, filled("a"))
    saved(checkpoints, 2, filled("b"), best=True)
    with_manifest(first, best_before=name)
    assert checkpoints.continue_from(first, first) is False
    assert checkpoints.best is None


@pytest.mark.parametrize("name", ["..", "../..", "step-1/.."])
def test_a_checkpoint_by_another_name_is_refused_and_nothing_removed(folder, name):
    _, (_, _, newest) = three_saved(folder)
    for wrong in (f"{folder}/{name}", f"{newest}/{name}"):
        with pytest.raises(CheckpointError), opened(wrong):
            pass
        with pytest.raises((CheckpointError, ValueError)):
            check(wrong)
        with suppress(ValueError):
            trim_ended(wrong)
    where = folder_at(folder)
    for operation in (where.remove, where.taken, where.read, where.write, where.path):
        with suppress(ValueError, TypeError):
            assert isinstance(operation(name, "manifest.json"), Exception)
    assert names_in(folder) == ["step-1", "step-2", "step-3"]


def test_what_a_link_in_the_place_of_a_checkpoint_leads_to_stays(tmp_path):
    other = tmp_path / "other"
    _, (theirs, _, _) = three_saved(other)
    for folder in (tmp_path / "path", f"file://{tmp_path}/url"):
        _, paths = three_saved(folder)
        where = folder_at(folder)
        for path in paths[:2]:
            _, name = split(path)
            assert where.remove(name) is None
            Path(files_of(path)[1]).symlink_to(theirs)
            where.take_state(name)
            check(theirs, whole=True)
            assert where.remove(name) is None
            assert not where.taken(name)
            check(theirs, whole=True)


def test_state_behind_a_link_in_a_checkpoint_stays(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    for folder in (tmp_path / "path", f"file://{tmp_path}/url"):
        source = saved(Checkpoints(folder), 1, filled("a"))
        Path(files_of(source)[1], "away").symlink_to(outside)
        with_manifest(source, state={"away/precious": "0"})
        with pytest.raises(CheckpointError, match=r"is damaged: .*away/precious"):
            check(source, whole=True)
        folder_at(folder).take_state("step-1")
    assert (outside / "precious").read_text() == "mine"
