"""Checkpoints in a folder of this machine and in stores: the same promises everywhere."""

from __future__ import annotations

import dataclasses
import uuid
from pathlib import Path

import fsspec
import pytest

from trials.checkpoint import CheckpointError, Checkpoints, opened
from trials.places import MANIFEST, PlaceError, absolute, inside, place, split
from trials.tasks.function import FunctionRun


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
    with opened(source) as files:
        assert (files / "more" / "config").read_text() == "c"
        return (files / "weights").read_text()[0]


def step(checkpoint):
    return int(split(checkpoint)[1].removeprefix("step-").partition("-")[0])


def test_what_was_saved_is_read_back(folder):
    checkpoints = Checkpoints(folder)
    first = checkpoints.save(1, filled("a"), best=True)
    second = checkpoints.save(2, filled("b"))
    assert [content(first), content(second)] == ["a", "b"]
    assert (checkpoints.best, checkpoints.last) == (first, second)
    assert [content(inside(folder, "best")), content(inside(folder, "last"))] == ["a", "b"]
    assert type(first) is type(folder) or isinstance(first, Path)
    assert Checkpoints(folder).next_number() == 3


def test_a_step_saved_twice_is_two_checkpoints(folder):
    checkpoints = Checkpoints(folder)
    first, again = checkpoints.save(5, filled("a")), checkpoints.save(5, filled("b"))
    assert split(again)[1] == "step-00000005-2"
    assert [content(first), content(again)] == ["a", "b"]


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_the_last_few_on_record_and_the_best_are_kept(folder, keep):
    checkpoints = Checkpoints(folder, keep)
    saved = [checkpoints.save(n, filled("abcdefg"[n]), best=n == 1) for n in range(1, 7)]
    for n, path in enumerate(saved, 1):
        checkpoints.reported(n / 10, path)
    checkpoints.recorded(0.5)
    kept = {name for name in place(folder).names() if name.startswith("step-")}
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
    assert "continuing from step-00000001" in caplog.text


def test_with_nothing_whole_left_the_error_says_so(folder):
    only = Checkpoints(folder).save(1, filled("a"))
    harmed(only, "flipped")
    with pytest.raises(CheckpointError, match="weights was changed or cut short; there is none before it"):
        content(only)


def test_an_upload_that_was_cut_short_is_no_checkpoint_and_goes(folder):
    checkpoints = Checkpoints(folder)
    checkpoints.save(1, filled("a"))
    if isinstance(folder, Path):
        (folder / ".writing-x").mkdir()
    else:
        files, root = files_of(folder)
        files.makedirs(f"{root}/step-00000002")
        files.pipe_file(f"{root}/step-00000002/weights", b"b")
    after = Checkpoints(folder)
    third = after.save(3, filled("c"))
    after.reported(0.3, third)
    after.recorded(0.3)
    assert sorted(n for n in place(folder).names() if n.startswith("step-")) == ["step-00000001", "step-00000003"]
    assert not place(folder).drafts()


def test_those_of_one_stretch_stand_for_each_other_and_the_newest_wins(folder):
    checkpoints = Checkpoints(folder)
    named = checkpoints.commit(checkpoints.draft(filled("a")), 1, stretch="x after 1")
    checkpoints.commit(checkpoints.draft(filled("b")), 2, stretch="x after 1")
    newest = checkpoints.commit(checkpoints.draft(filled("c")), 3, stretch="x after 1")
    checkpoints.commit(checkpoints.draft(filled("d")), 4, stretch="x after 2")
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
    with pytest.raises(PlaceError, match="nonsense://bucket"):
        place("nonsense://bucket/x")


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
    items = iter(first)
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
        setup = dataclasses.replace(lab.setup("unused", {"epochs": 3}, resume_from, dropout=0.3), folder=url)
        return task.start(setup, data)

    reports = [item for item in start() if item]
    assert str(reports[0].checkpoint).startswith(url)
    again = start(reports[0].checkpoint)
    assert without_timings([item for item in again if item]) == without_timings(reports[1:])


def test_a_store_that_refuses_to_remove_fails_no_training(monkeypatch):
    folder = f"memory://{uuid.uuid4().hex}/trial"
    checkpoints = Checkpoints(folder, keep=1)
    saved = [checkpoints.save(n, filled("a")) for n in (1, 2)]
    checkpoints.reported(0.2, saved[1])

    def refuse(*args, **more):
        raise PermissionError("read only")

    monkeypatch.setattr(type(files_of(folder)[0]), "rm", refuse)
    checkpoints.recorded(0.2)
    assert content(saved[0]) == "a"
