"""Checkpoints in a folder of this machine and in stores: the same promises everywhere."""

from __future__ import annotations

import dataclasses
import os
import shutil
import uuid
from pathlib import Path

import fsspec
import pytest

from trials.checkpoints.checkpoint_folder import FolderError
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.folders import (
    absolute,
    folder_at,
    inside,
    is_there,
    split,
    trial_of,
    used_bytes,
)
from trials.checkpoints.manifests import CheckpointError, Label, check, run_of
from trials.checkpoints.trimming import held, trim_ended, trim_waiting
from trials.contract import Held
from trials.disk.whole_folders import MANIFEST
from trials.tasks.function.run import FunctionRun


@pytest.fixture(params=["local", "file", "memory"])
def folder(request, tmp_path):
    """A trial's folder, by path or URL."""
    if request.param == "local":
        return tmp_path / "study" / "trial"
    if request.param == "file":
        return f"file://{tmp_path}/study/trial"
    return f"memory://{uuid.uuid4().hex}/trial"


def files_of(where):
    """The file system of a path or URL, and the root in it."""
    return fsspec.core.url_to_fs(str(where))


def filled(text):
    def fill(draft):
        (draft / "weights").write_text(text * 100)
        (draft / "more").mkdir()
        (draft / "more" / "config").write_text("c")

    return fill


def content(source):
    with opened(source) as checkpoint:
        files = checkpoint.files
        assert (files / "more" / "config").read_text() == "c"
        return (files / "weights").read_text()[0]


def test_what_was_saved_is_read_back(folder):
    checkpoints = Checkpoints(folder)
    first = checkpoints.save(1, filled("a"), best=True)
    second = checkpoints.save(2, filled("b"))
    assert [content(first), content(second)] == ["a", "b"]
    assert (checkpoints.best, checkpoints.last) == (first, second)
    assert [content(inside(folder, "best")), content(inside(folder, "last"))] == ["a", "b"]
    assert type(first) is type(folder) or isinstance(first, Path)


def test_links_are_read_back_and_never_followed(folder, tmp_path):
    outside = tmp_path / "key"
    outside.write_text("private")

    def fill(draft):
        (draft / "step-1").mkdir()
        (draft / "step-1" / "model [1]").write_text("odd")
        (draft / "latest").symlink_to("step-1")
        (draft / "gone").symlink_to("nothing")
        (draft / "key").symlink_to(outside)

    saved = Checkpoints(folder).save(2, fill)
    with opened(saved) as checkpoint:
        files = checkpoint.files
        links = {
            each.name: os.fspath(each.readlink()) for each in files.iterdir() if each.is_symlink()
        }
        assert links == {"latest": "step-1", "gone": "nothing", "key": str(outside)}
        assert (files / "latest" / "model [1]").read_text() == "odd"
    assert folder_at(folder).remove(split(saved)[1]) is None
    assert outside.read_text() == "private"


def test_a_step_saved_twice_is_two_checkpoints(folder):
    checkpoints = Checkpoints(folder)
    first, again = checkpoints.save(5, filled("a")), checkpoints.save(5, filled("b"))
    assert split(again)[1] == "step-5-2"
    assert [content(first), content(again)] == ["a", "b"]


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_the_last_few_on_record_and_the_best_are_kept(folder, keep):
    checkpoints = Checkpoints(folder, keep)
    saved = [checkpoints.save(n, filled("abcdefg"[n]), best=n == 1) for n in range(1, 7)]
    for n, path in enumerate(saved, 1):
        checkpoints.reported(n / 10, path)
    checkpoints.recorded(0.5)
    kept = {name for name in folder_at(folder).names() if name.startswith("step-")}
    assert kept == {split(path)[1] for path in {saved[0], *saved[5 - keep :]}}
    assert content(checkpoints.best) == "b"


def harmed(where, harm):
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


@pytest.mark.parametrize("harm", ["truncated", "flipped", "no manifest", "file gone", "empty"])
def test_damage_is_recognised_and_the_one_before_is_used(folder, harm, caplog):
    checkpoints = Checkpoints(folder)
    checkpoints.save(1, filled("a"))
    second = checkpoints.save(2, filled("b"))
    harmed(second, harm)
    assert content(second) == "a"
    assert content(inside(folder, "last")) == "a"
    assert "continuing from step-1" in caplog.text


def test_with_nothing_whole_left_the_error_says_so(folder):
    only = Checkpoints(folder).save(1, filled("a"))
    harmed(only, "flipped")
    with pytest.raises(
        CheckpointError, match="weights was changed or cut short; there is none before it"
    ):
        content(only)


def test_an_upload_that_was_cut_short_is_no_checkpoint_and_goes(folder):
    checkpoints = Checkpoints(folder)
    checkpoints.save(1, filled("a"))
    if isinstance(folder, Path):
        (folder / ".writing-x").mkdir()
    else:
        files, root = files_of(folder)
        files.makedirs(f"{root}/step-2")
        files.pipe_file(f"{root}/step-2/weights", b"b")
    after = Checkpoints(folder)
    third = after.save(3, filled("c"))
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
    first = checkpoints.save(1, filled("a"), best=True)
    assert checkpoints.reported(1.0, first) == first
    checkpoints.recorded(1.0)
    if continued:
        checkpoints.save(6, filled("lost"), best=True)
        checkpoints = Checkpoints(folder)
    checkpoints.save(2, filled("b"))
    third = checkpoints.save(3, filled("c"))
    checkpoints.save(4, filled("d"), best=not continued)
    assert checkpoints.reported(2.0, third) is None
    checkpoints.recorded(2.0)
    assert content(first) == "a"
    fifth = checkpoints.save(5, filled("e"), best=True)
    assert checkpoints.reported(3.0, fifth) == fifth
    checkpoints.recorded(3.0)
    assert not folder_at(folder).taken("step-1")


def test_those_of_one_stretch_stand_for_each_other_and_the_newest_wins(folder):
    checkpoints = Checkpoints(folder)
    named = checkpoints.commit(checkpoints.draft(filled("a")), Label(1, stretch="x after 1"))
    checkpoints.commit(checkpoints.draft(filled("b")), Label(2, stretch="x after 1"))
    newest = checkpoints.commit(checkpoints.draft(filled("c")), Label(3, stretch="x after 1"))
    checkpoints.commit(checkpoints.draft(filled("d")), Label(4, stretch="x after 2"))
    assert content(named) == "c"
    harmed(newest, "flipped")
    assert content(named) == "b"


def test_names_of_folders_survive_the_way_to_another_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("s3://bucket/studies/") == "s3://bucket/studies"
    assert absolute("studies") == str(tmp_path / "studies")
    assert inside("s3://bucket/studies", "trial-1") == "s3://bucket/studies/trial-1"
    assert inside("studies", "trial-1") == Path("studies/trial-1")
    assert split("memory://a/b/step-1") == ("memory://a/b", "step-1")


def test_a_url_that_nothing_can_read_is_refused():
    with pytest.raises(FolderError, match="nonsense://bucket"):
        folder_at("nonsense://bucket/x")


def test_a_run_has_the_same_name_in_every_version(lab):
    setup = dataclasses.replace(
        lab.setup("unused", {"epochs": 2}), params={"lr": 0.1, "layers": [1, 2]}, seed=7
    )
    assert run_of(setup) == "795145d150c30591"


def test_a_place_lists_and_dissolves_and_writes_small_files(folder):
    where = folder_at(folder)
    assert where.entries() == []
    assert where.text("mark") is None
    where.write("mark", "first")
    where.write("mark", "ours – ünd")
    Checkpoints(folder).save(1, filled("a"))
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


@pytest.mark.parametrize(
    ("name", "number"),
    [("trial-00003", 3), ("trial-123456", 123456), ("trial-3", None), ("trial-000003", None),
     ("trial-00003.old", None),
     ("trial-०००००", None)],
)  # fmt: skip
def test_only_the_name_that_a_trial_is_given_is_its_folders(name, number):
    assert trial_of(name) == number


def counting(params, trial):
    start = int((trial.checkpoint / "done").read_text()) if trial.checkpoint else 0
    for epoch in range(start + 1, 5):
        with trial.save() as draft:
            (draft / "done").write_text(str(epoch))
        trial.report(epoch, {"epoch": epoch})


def test_a_training_function_continues_from_a_store(lab):
    url = f"memory://{uuid.uuid4().hex}/trial"

    def run(resume_from=None):
        setup = dataclasses.replace(lab.setup("unused", {"epochs": 4}, resume_from), folder=url)
        return FunctionRun(counting, {}, setup)

    first = run()
    items = (item for item in first if item is not None)
    reports = [next(items), next(items)]
    first.close()
    second = run(reports[1].checkpoint)
    assert [item.resource for item in second if item] == [3.0, 4.0]
    downloaded = second._trial.checkpoint
    assert downloaded.is_dir()
    second.close()
    assert not downloaded.exists()


def test_a_run_in_a_store_resumes_bit_for_bit(lab, without_timings):
    task = lab.task()
    data = task.prepare({})
    url = f"memory://{uuid.uuid4().hex}/trial"

    def start(resume_from=None):
        setup = dataclasses.replace(
            lab.setup("unused", {"epochs": 3}, resume_from, dropout=0.3), folder=url
        )
        return task.start(setup, data)

    reports = [item for item in start() if item]
    assert str(reports[0].checkpoint).startswith(url)
    again = start(reports[0].checkpoint)
    assert without_timings([item for item in again if item]) == without_timings(reports[1:])


@pytest.mark.parametrize("error", [PermissionError, RuntimeError])
def test_a_store_that_refuses_to_remove_fails_no_training(monkeypatch, error):
    folder = f"memory://{uuid.uuid4().hex}/trial"
    checkpoints = Checkpoints(folder, keep=1)
    saved = [checkpoints.save(n, filled("a")) for n in (1, 2)]
    checkpoints.reported(0.2, saved[1])

    def refuse(*args, **more):
        raise error("read only")

    monkeypatch.setattr(type(files_of(folder)[0]), "rm", refuse)
    checkpoints.recorded(0.2)
    assert content(saved[0]) == "a"


@pytest.mark.parametrize("error", [PermissionError, RuntimeError])
def test_a_store_that_refuses_to_remove_a_file_fails_no_training(monkeypatch, error):
    folder = f"memory://{uuid.uuid4().hex}/trial"
    _, (best, _, newest) = run_of_three(folder)
    checkpoints = Checkpoints(folder, keep=1)
    checkpoints.reported(0.3, newest)

    def refuse(*args, **more):
        raise error("read only")

    monkeypatch.setattr(type(files_of(folder)[0]), "rm_file", refuse)
    checkpoints.recorded(0.3)
    check(best, whole=True)


# ---------------------------------------- what waiting and ended trials keep


def run_of_three(folder):
    """Three checkpoints with 300 bytes of weights and 600 of state each; the first is the best."""
    checkpoints = Checkpoints(folder, keep=9)
    saved = []
    for number in (1, 2, 3):
        draft = checkpoints.draft(filled("w"))
        (draft / "weights").write_text("w" * 300)
        (draft / "state.pt").write_text("s" * 600)
        saved.append(checkpoints.commit(draft, Label(number, number == 1, state=["state.pt"])))
    return checkpoints, saved


def names_in(folder):
    return sorted(name for name in folder_at(folder).names() if name.startswith("step-"))


def manifest_bytes(source):
    return len(folder_at(split(source)[0]).read(split(source)[1], MANIFEST))


def test_one_that_waits_keeps_its_newest_whole_and_the_weights_of_its_best(folder):
    _, (best, _, newest) = run_of_three(folder)
    trim_waiting(newest, best)
    assert names_in(folder) == ["step-1", "step-3"]
    check(newest, whole=True)
    check(best)
    with pytest.raises(CheckpointError, match=r"state\.pt is missing"):
        check(best, whole=True)
    assert held(newest, best).waiting == held(newest, best).now - pointer_bytes(folder)
    trim_waiting(newest, best)
    assert names_in(folder) == ["step-1", "step-3"]


def pointer_bytes(folder):
    """In a store a pointer is a small file."""
    return sum(size for name, size in folder_at(folder).sizes().items() if name in ("last", "best"))


def test_what_is_newer_than_the_record_is_not_touched_while_a_trial_waits(folder):
    _, (_, recorded, newest) = run_of_three(folder)
    trim_waiting(recorded, None)
    assert names_in(folder) == ["step-1", "step-2", "step-3"], "best is pointed at"
    check(newest, whole=True)
    check(recorded, whole=True)


def test_one_that_ended_keeps_the_weights_of_its_best_alone(folder):
    checkpoints, (best, _, newest) = run_of_three(folder)
    sizes = held(newest, best)
    assert sizes.ended == 300 + 1 + manifest_bytes(best)
    assert sizes.waiting == sizes.ended + 900 + 1 + manifest_bytes(newest)
    trim_ended(best)
    assert names_in(folder) == ["step-1"]
    assert (checkpoints.best, checkpoints.last) == (best, best)
    check(best)
    assert used_bytes(folder) - pointer_bytes(folder) == sizes.ended
    assert held(best, best) == Held(now=used_bytes(folder), waiting=sizes.ended, ended=sizes.ended)


def test_nothing_is_removed_for_a_checkpoint_that_is_not_there(folder):
    _, (best, _, _) = run_of_three(folder)
    trim_ended(inside(folder, "step-9"))
    trim_waiting(inside(folder, "step-9"), best)
    assert len(names_in(folder)) == 3


def test_a_run_that_continues_names_the_best_that_it_knows_of(folder):
    checkpoints = Checkpoints(folder)
    first = checkpoints.save(1, filled("a"), best=True)
    second = checkpoints.save(2, filled("b"))
    checkpoints.save(3, filled("c"), best=True)
    again = Checkpoints(folder)
    assert again.continue_from(second, second)
    assert again.best == first
    assert again.continue_from(second, second)
    assert again.best == first


def test_where_the_best_is_lost_nothing_is_removed_until_a_report_names_another(folder):
    checkpoints = Checkpoints(folder, keep=1)
    first = checkpoints.save(1, filled("a"), best=True)
    second = checkpoints.save(2, filled("b"))
    third = checkpoints.save(3, filled("c"))
    for lost in (first, third):
        harmed(lost, "flipped")
    again = Checkpoints(folder, keep=1)
    assert not again.continue_from(third, second)
    assert again.best is None
    again.reported(4.0, again.save(4, filled("d")))
    again.recorded(4.0)
    assert len(names_in(folder)) == 4
    again.reported(5.0, again.save(5, filled("e"), best=True))
    again.recorded(5.0)
    assert names_in(folder) == ["step-5"]


def test_a_waiting_trial_that_was_started_meanwhile_keeps_everything(folder):
    _, (best, _, newest) = run_of_three(folder)
    trim_waiting(newest, best, lambda: False)
    assert len(names_in(folder)) == 3
    check(best, whole=True)


def test_nobody_continues_from_weights_alone(folder, caplog):
    _, (best, second, newest) = run_of_three(folder)
    trim_waiting(second, best)
    for damaged in (second, newest):
        files, root = files_of(damaged)
        files.rm_file(f"{root}/weights")
    with (
        pytest.raises(CheckpointError, match=r"step-1 is damaged: state\.pt is missing"),
        opened(newest),
    ):
        pass


def test_what_training_code_keeps_beside_its_checkpoints_stays(folder):
    files, root = files_of(folder)
    files.makedirs(f"{root}/plots", exist_ok=True)
    files.pipe_file(f"{root}/plots/loss.png", b"mine")
    checkpoints, (best, _, newest) = run_of_three(folder)
    checkpoints.reported(3.0, newest)
    checkpoints.recorded(3.0)
    trim_ended(best)
    assert files.cat_file(f"{root}/plots/loss.png") == b"mine"


def test_nothing_is_at_a_path_that_cannot_be(tmp_path: Path) -> None:
    assert is_there(tmp_path)
    for name in ("a", "a" * 300, "a/" * 3000, "a\0"):
        assert not is_there(tmp_path / name)


def test_folders_of_the_training_code_are_no_checkpoints(tmp_path):
    folder = tmp_path / "trial"
    checkpoints = Checkpoints(folder)
    own = folder / "step-1"
    own.mkdir(parents=True)
    (own / "notes.txt").write_text("mine")
    for number in range(2, 7):
        checkpoints.reported(number, checkpoints.save(number, filled("theirs")))
        checkpoints.recorded(number)
    assert (own / "notes.txt").read_text() == "mine"
    assert "step-2" not in names_in(folder)


def test_a_removal_that_was_cut_off_is_ended_by_the_next(tmp_path):
    folder = tmp_path / "trial"
    checkpoints = Checkpoints(folder)
    for number in (1, 2, 3):
        checkpoints.save(number, filled("a"))
    shutil.rmtree(folder / "step-1" / "more")  # the manifest is removed last
    checkpoints.reported(4, checkpoints.save(4, filled("a")))
    checkpoints.recorded(4)
    assert "step-1" not in names_in(folder)
