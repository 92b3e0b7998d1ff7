"""Checkpoints are whole or not there."""

from __future__ import annotations

import stat

import pytest

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.manifests import CheckpointError, Label, verify
from trials.disk.whole_folders import MANIFEST


def filled(text):
    def fill(folder):
        (folder / "weights").write_text(text)
        (folder / "more").mkdir()
        (folder / "more" / "config").write_text("c")

    return fill


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_is_a_folder_with_a_manifest_that_holds(tmp_path):
    path = Checkpoints(tmp_path / "trial").save(120, filled("a"))
    assert path == tmp_path / "trial" / "step-120"
    assert names(path) == ["manifest.json", "more", "weights"]
    verify(path)


def test_last_and_best_are_relative_links(tmp_path):
    checkpoints = Checkpoints(tmp_path / "trial")
    best = checkpoints.save(1, filled("a"), best=True)
    last = checkpoints.save(2, filled("b"))
    (tmp_path / "trial").rename(tmp_path / "moved")
    assert (tmp_path / "moved" / "best").readlink().name == best.name
    assert (tmp_path / "moved" / "last" / "weights").read_text() == "b"
    assert last.name == "step-2"


def test_once_a_report_is_on_record_only_its_checkpoint_the_one_before_and_the_best_are_kept(
    tmp_path,
):
    checkpoints = Checkpoints(tmp_path)
    for step in range(1, 7):
        checkpoints.reported(step / 10, checkpoints.save(step, filled(str(step)), best=step == 2))
    checkpoints.recorded(0.6)
    assert names(tmp_path) == ["best", "last", "step-2", "step-5", "step-6"]


def test_a_checkpoint_that_is_on_record_and_all_after_it_stay(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in range(1, 7):
        checkpoints.reported(step / 10, checkpoints.save(step, filled(str(step))))
    checkpoints.recorded(0.3)
    assert names(tmp_path) == ["last", *(f"step-{step}" for step in range(2, 7))]


def test_without_word_that_reports_are_on_record_nothing_is_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in range(1, 7):
        checkpoints.reported(step / 10, checkpoints.save(step, filled(str(step))))
    checkpoints.recorded(0.05)
    assert len(names(tmp_path)) == 7


def test_the_best_on_record_stays_while_newer_reports_name_none(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.reported(0.1, checkpoints.save(1, filled("1"), best=True))
    checkpoints.recorded(0.1)
    best = checkpoints.save(2, filled("2"), best=True)
    assert checkpoints.reported(0.2, best) == best
    checkpoints.save(9, filled("9"), best=True)  # the thread that saves is ahead of the reports
    for step in (3, 4, 5):
        assert checkpoints.reported(step / 10, checkpoints.save(step, filled(str(step)))) is None
    checkpoints.recorded(0.5)
    assert best.is_dir()


def test_a_process_that_lost_its_driver_does_not_remove_what_the_next_one_wrote(tmp_path):
    zombie, successor = Checkpoints(tmp_path), Checkpoints(tmp_path)
    zombie.reported(0.1, zombie.save(1, filled("a")))
    successor.reported(0.2, successor.save(2, filled("b")))
    zombie.reported(0.2, zombie.save(2, filled("b")))
    zombie.recorded(0.1)
    successor.recorded(0.2)
    assert names(tmp_path) == ["last", "step-1", "step-2", "step-2-2"]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    first = checkpoints.save(1, filled("a"))

    def fail(folder):
        (folder / "weights").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        checkpoints.save(2, fail)
    assert names(tmp_path) == ["last", "step-1"]
    verify(first)


def test_what_a_killed_writer_left_is_cleaned_up(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    draft = checkpoints.draft(filled("a"))
    draft.with_name(draft.name + "x").mkdir()
    checkpoints.commit(draft, Label(1))
    checkpoints = Checkpoints(tmp_path)
    checkpoints.reported(0.2, checkpoints.save(2, filled("b")))
    checkpoints.recorded(0.2)
    assert names(tmp_path) == ["last", "step-1", "step-2"]


def test_a_step_saved_twice_gets_a_second_name_and_comes_after_the_first(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    first, second = checkpoints.save(5, filled("a")), checkpoints.save(5, filled("b"))
    assert [first.name, second.name] == ["step-5", "step-5-2"]
    (second / "weights").write_text("damaged")
    with opened(tmp_path / "last") as checkpoint:
        assert checkpoint.files == checkpoint.path == first


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (lambda folder: (folder / "weights").write_text("A"), "weights was changed or cut short"),
        (lambda folder: (folder / "weights").unlink(), "weights is missing"),
        (
            lambda folder: (folder / "manifest.json").unlink(),
            r"is not a checkpoint: it has no manifest\.json",
        ),
        (
            lambda folder: (folder / "manifest.json").write_text("{"),
            r"its manifest\.json cannot be read",
        ),
        (
            lambda folder: (folder / "manifest.json").write_text("[]"),
            r"its manifest\.json cannot be read",
        ),
        (
            lambda folder: (folder / "manifest.json").write_text('{"files": {}}'),
            "has format None; this program reads",
        ),
    ],
)
def test_damage_is_recognised_and_the_one_before_is_used(tmp_path, caplog, harm, complaint):
    checkpoints = Checkpoints(tmp_path)
    first = checkpoints.save(1, filled("a"))
    second = checkpoints.save(2, filled("b"))
    harm(second)
    with pytest.raises(CheckpointError, match=complaint):
        verify(second)
    with opened(second) as checkpoint:
        assert checkpoint.files == checkpoint.path == first
    assert "continuing from step-1" in caplog.text


def test_a_missing_checkpoint_falls_back_too(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    first = checkpoints.save(1, filled("a"))
    with opened(tmp_path / "step-9") as checkpoint:
        assert checkpoint.files == checkpoint.path == first
    nowhere = opened(tmp_path / "nowhere" / "step-1")
    with pytest.raises(CheckpointError, match="start the trial afresh"), nowhere:
        pass


def test_files_keep_their_modes_but_weights_are_as_readable_as_their_folder(tmp_path):
    modes = {"model.safetensors": 0o600, "key": 0o600, "run.sh": 0o755}

    def fill(folder):
        for name, mode in modes.items():
            (folder / name).write_text("a")
            (folder / name).chmod(mode)

    path = Checkpoints(tmp_path).save(1, fill)
    expected = {**modes, "model.safetensors": path.stat().st_mode & 0o666}
    assert {name: stat.S_IMODE((path / name).stat().st_mode) for name in modes} == expected


def test_a_file_of_the_manifests_name_is_refused(tmp_path):
    with pytest.raises(FileExistsError, match="give your file another name"):
        Checkpoints(tmp_path).save(1, lambda folder: (folder / MANIFEST).write_text("{}"))
    assert list(tmp_path.iterdir()) == []


def test_two_that_save_the_same_step_at_once_do_not_get_in_each_others_way(tmp_path, monkeypatch):
    first, second = Checkpoints(tmp_path), Checkpoints(tmp_path)
    draft = second.draft(filled("second"))
    taken = second._here.taken

    def overtaken(name):
        found = taken(name)
        if not found and name == "step-3":
            first.save(3, filled("first"))
        return found

    monkeypatch.setattr(second._here, "taken", overtaken)
    assert second.commit(draft, Label(3)) == tmp_path / "step-3-2"
    assert (tmp_path / "step-3" / "weights").read_text() == "first"
    assert (tmp_path / "step-3-2" / "weights").read_text() == "second"
