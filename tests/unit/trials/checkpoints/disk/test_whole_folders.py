"""Folders that are written whole or not at all."""

import errno
from pathlib import Path

import pytest

from trials.checkpoints.disk import drafts, whole_folders
from trials.checkpoints.disk.whole_folders import (
    damage,
    digests,
    is_disk_full,
    put,
    removed_on_error,
    seal,
)


def draft_in(parent: Path) -> Path:
    draft = drafts.new(parent, ".writing-")
    (draft / "more").mkdir()
    (draft / "more" / "config").write_text("c")
    (draft / "weights").write_text("w")
    seal(draft, {"files": digests(draft)})
    return draft


def test_a_draft_that_is_put_is_there_whole_and_no_longer_locked(tmp_path):
    draft = draft_in(tmp_path)
    target = put(draft, tmp_path / "v1")
    assert [path.name for path in tmp_path.iterdir()] == ["v1"]
    assert damage(target, digests(target)) is None
    target.rename(tmp_path / ".writing-again")
    drafts.remove_abandoned(tmp_path, ".writing-")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_is_refused_and_the_draft_stays(tmp_path):
    put(draft_in(tmp_path), tmp_path / "v1")
    draft = draft_in(tmp_path)
    with pytest.raises(FileExistsError):
        put(draft, tmp_path / "v1")
    drafts.remove_abandoned(tmp_path, ".writing-")
    assert (draft / "weights").read_text() == "w"
    drafts.discard(draft)


def test_a_draft_that_could_not_be_written_is_removed(tmp_path):
    draft = draft_in(tmp_path)
    with pytest.raises(KeyboardInterrupt), removed_on_error(draft):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("weights", "W", "weights was changed or cut short"),
        ("more/config", None, "more/config is missing"),
    ],
)
def test_damage_names_the_file(tmp_path, file, content, what):
    folder = put(draft_in(tmp_path), tmp_path / "v1")
    expected = digests(folder)
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    assert damage(folder, expected) == what


def test_what_need_not_outlive_a_loss_of_power_is_not_flushed(tmp_path, monkeypatch):
    flushed: list[Path] = []
    monkeypatch.setattr(whole_folders, "flush_one", flushed.append)
    put(draft_in(tmp_path), tmp_path / "v1", durable=False)
    assert flushed == []
    put(draft_in(tmp_path), tmp_path / "v2")
    assert flushed[-1] == tmp_path


def test_a_full_disk_and_a_used_up_share_of_one_are_recognised():
    assert is_disk_full(OSError(errno.EDQUOT, "quota"))
    assert is_disk_full(RuntimeError("write failed: No space left on device"))
    assert not is_disk_full(OSError(errno.EACCES, "no"))
