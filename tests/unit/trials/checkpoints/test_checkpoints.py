"""Checkpoints are whole or not there, and go once nothing needs them."""

import uuid
from pathlib import Path

import pytest

from support.files.checkpoints import (
    content,
    drafted,
    files_of,
    filled,
    harmed,
    names_in,
    saved,
    three_saved,
)
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.folders import folder_at, inside, split
from trials.checkpoints.manifests import Label, check, verify
from trials.checkpoints.trimming import trim_ended


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_was_saved_is_read_back(folder):
    checkpoints = Checkpoints(folder)
    first = saved(checkpoints, 1, filled("a"), best=True)
    second = saved(checkpoints, 2, filled("b"))
    assert [content(first), content(second)] == ["a", "b"]
    assert (checkpoints.best, checkpoints.last) == (first, second)
    assert [content(inside(folder, "best")), content(inside(folder, "last"))] == ["a", "b"]
    assert type(first) is type(folder) or isinstance(first, Path)


def test_a_checkpoint_is_a_folder_with_a_manifest_that_holds(tmp_path):
    path = saved(Checkpoints(tmp_path / "trial"), 120, filled("a"))
    assert path == tmp_path / "trial" / "step-120"
    assert names(path) == ["manifest.json", "more", "weights"]
    verify(path)


def test_last_and_best_are_relative_links(tmp_path):
    checkpoints = Checkpoints(tmp_path / "trial")
    best = saved(checkpoints, 1, filled("a"), best=True)
    last = saved(checkpoints, 2, filled("b"))
    (tmp_path / "trial").rename(tmp_path / "moved")
    assert (tmp_path / "moved" / "best").readlink().name == best.name
    assert content(tmp_path / "moved" / "last") == "b"
    assert last.name == "step-2"


def test_without_word_that_reports_are_on_record_nothing_is_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in range(1, 7):
        checkpoints.reported(step / 10, saved(checkpoints, step, filled(str(step))))
    checkpoints.recorded(0.05)
    assert len(names(tmp_path)) == 7


def test_the_best_on_record_stays_while_newer_reports_name_none(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.reported(0.1, saved(checkpoints, 1, filled("1"), best=True))
    checkpoints.recorded(0.1)
    best = saved(checkpoints, 2, filled("2"), best=True)
    assert checkpoints.reported(0.2, best) == best
    saved(checkpoints, 9, filled("9"), best=True)  # the thread that saves is ahead of the reports
    for step in (3, 4, 5):
        assert checkpoints.reported(step / 10, saved(checkpoints, step, filled(str(step)))) is None
    checkpoints.recorded(0.5)
    assert best.is_dir()


def test_a_process_that_lost_its_driver_does_not_remove_what_the_next_one_wrote(tmp_path):
    zombie, successor = Checkpoints(tmp_path), Checkpoints(tmp_path)
    zombie.reported(0.1, saved(zombie, 1, filled("a")))
    successor.reported(0.2, saved(successor, 2, filled("b")))
    zombie.reported(0.2, saved(zombie, 2, filled("b")))
    zombie.recorded(0.1)
    successor.recorded(0.2)
    assert names(tmp_path) == ["last", "step-1", "step-2", "step-2-2"]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    first = saved(checkpoints, 1, filled("a"))

    def fail(folder):
        (folder / "weights").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        saved(checkpoints, 2, fail)
    assert names(tmp_path) == ["last", "step-1"]
    verify(first)


def test_what_a_killed_writer_left_is_cleaned_up(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    draft = drafted(checkpoints, filled("a"))
    draft.with_name(draft.name + "x").mkdir()
    checkpoints.commit(draft, Label(1))
    checkpoints = Checkpoints(tmp_path)
    checkpoints.reported(0.2, saved(checkpoints, 2, filled("b")))
    checkpoints.recorded(0.2)
    assert names(tmp_path) == ["last", "step-1", "step-2"]


def test_a_step_saved_twice_gets_a_second_name_and_comes_after_the_first(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    first, second = saved(checkpoints, 5, filled("a")), saved(checkpoints, 5, filled("b"))
    assert [first.name, second.name] == ["step-5", "step-5-2"]
    (second / "weights").write_text("damaged")
    with opened(tmp_path / "last") as checkpoint:
        assert checkpoint.files == checkpoint.path == first


def test_two_that_save_the_same_step_at_once_do_not_get_in_each_others_way(tmp_path, monkeypatch):
    first, second = Checkpoints(tmp_path), Checkpoints(tmp_path)
    draft = drafted(second, filled("b"))
    taken = second._here.taken

    def overtaken(name):
        found = taken(name)
        if not found and name == "step-3":
            saved(first, 3, filled("a"))
        return found

    monkeypatch.setattr(second._here, "taken", overtaken)
    assert second.commit(draft, Label(3)) == tmp_path / "step-3-2"
    assert content(tmp_path / "step-3") == "a"
    assert content(tmp_path / "step-3-2") == "b"


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_the_last_few_on_record_and_the_best_are_kept(folder, keep):
    checkpoints = Checkpoints(folder, keep)
    paths = [saved(checkpoints, n, filled("abcdefg"[n]), best=n == 1) for n in range(1, 7)]
    for n, path in enumerate(paths, 1):
        checkpoints.reported(n / 10, path)
    checkpoints.recorded(0.5)
    kept = {name for name in folder_at(folder).names() if name.startswith("step-")}
    assert kept == {split(path)[1] for path in {paths[0], *paths[5 - keep :]}}
    assert content(checkpoints.best) == "b"


def test_an_upload_that_was_cut_short_is_no_checkpoint_and_goes(folder):
    checkpoints = Checkpoints(folder)
    saved(checkpoints, 1, filled("a"))
    if isinstance(folder, Path):
        (folder / ".writing-x").mkdir()
    else:
        files, root = files_of(folder)
        files.makedirs(f"{root}/step-2")
        files.pipe_file(f"{root}/step-2/weights", b"b")
    after = Checkpoints(folder)
    third = saved(after, 3, filled("c"))
    after.reported(0.3, third)
    after.recorded(0.3)
    assert sorted(n for n in folder_at(folder).names() if n.startswith("step-")) == [
        "step-1",
        "step-3",
    ]
    assert not folder_at(folder).drafts()


@pytest.mark.parametrize("continued", [False, True])
def test_the_best_on_record_stays_until_a_report_names_a_better_one(folder, continued):
    """While a newer one is being written, or was written by an attempt whose report was lost."""
    checkpoints = Checkpoints(folder)
    first = saved(checkpoints, 1, filled("a"), best=True)
    assert checkpoints.reported(1.0, first) == first
    checkpoints.recorded(1.0)
    if continued:
        saved(checkpoints, 6, filled("lost"), best=True)
        checkpoints = Checkpoints(folder)
    saved(checkpoints, 2, filled("b"))
    third = saved(checkpoints, 3, filled("c"))
    saved(checkpoints, 4, filled("d"), best=not continued)
    assert checkpoints.reported(2.0, third) is None
    checkpoints.recorded(2.0)
    assert content(first) == "a"
    fifth = saved(checkpoints, 5, filled("e"), best=True)
    assert checkpoints.reported(3.0, fifth) == fifth
    checkpoints.recorded(3.0)
    assert not folder_at(folder).taken("step-1")


def test_a_run_that_continues_names_the_best_that_it_knows_of(folder):
    checkpoints = Checkpoints(folder)
    first = saved(checkpoints, 1, filled("a"), best=True)
    second = saved(checkpoints, 2, filled("b"))
    saved(checkpoints, 3, filled("c"), best=True)
    again = Checkpoints(folder)
    assert again.continue_from(second, second)
    assert again.best == first
    assert again.continue_from(second, second)
    assert again.best == first


def test_where_the_best_is_lost_nothing_is_removed_until_a_report_names_another(folder):
    checkpoints = Checkpoints(folder, keep=1)
    first = saved(checkpoints, 1, filled("a"), best=True)
    second = saved(checkpoints, 2, filled("b"))
    third = saved(checkpoints, 3, filled("c"))
    for lost in (first, third):
        harmed(lost, "flipped")
    again = Checkpoints(folder, keep=1)
    assert not again.continue_from(third, second)
    assert again.best is None
    again.reported(4.0, saved(again, 4, filled("d")))
    again.recorded(4.0)
    assert len(names_in(folder)) == 4
    again.reported(5.0, saved(again, 5, filled("e"), best=True))
    again.recorded(5.0)
    assert names_in(folder) == ["step-5"]


def test_what_training_code_keeps_beside_its_checkpoints_stays(folder):
    files, root = files_of(folder)
    files.makedirs(f"{root}/plots", exist_ok=True)
    files.pipe_file(f"{root}/plots/loss.png", b"mine")
    checkpoints, (best, _, newest) = three_saved(folder)
    checkpoints.reported(3.0, newest)
    checkpoints.recorded(3.0)
    trim_ended(best)
    assert files.cat_file(f"{root}/plots/loss.png") == b"mine"


@pytest.mark.parametrize("error", [PermissionError, RuntimeError])
@pytest.mark.parametrize("operation", ["rm", "rm_file"])
def test_a_store_that_refuses_to_remove_fails_no_training(monkeypatch, operation, error):
    folder = f"memory://{uuid.uuid4().hex}/trial"
    _, (best, second, newest) = three_saved(folder)
    checkpoints = Checkpoints(folder, keep=1)
    checkpoints.reported(0.3, newest)

    def refuse(*args, **more):
        raise error("read only")

    monkeypatch.setattr(type(files_of(folder)[0]), operation, refuse)
    checkpoints.recorded(0.3)
    check(second if operation == "rm" else best, whole=True)
