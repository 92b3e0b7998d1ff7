"""Whose checkpoints a folder holds: studies that share one, studies of earlier versions, and
folders that are moved."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.errors import StudyHeld, UserError
from hpsearch.running.checkpoint_folders import (
    MARKER,
    Mark,
    StudyFolder,
    checkpoint_root,
    folder_in,
    folder_name,
    folder_of,
    folder_of_new,
    folders_of,
    mark_of,
)
from hpsearch.running.creation.study import create_study
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.audit.checkpoints import unusable
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from support.studies.saved import an_old_study, drive, owners, run, surpassed, trial_folders
from trials.checkpoints.folders import folder_at

STUDY = """
study: flowers
task: {kind: "own_task:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 4}}
"""


def spec_of(base: Path, more: str = "") -> StudySpec:
    return parse(STUDY + more, base=base, name="study.yaml")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path}/study.db")) as opened:
        yield opened


@pytest.fixture(params=["path", "url"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The folder that several studies are given."""
    return f"{tmp_path}/shared" if request.param == "path" else f"file://{tmp_path}/shared"


# ------------------------------------------------------------------------------------------ studies
# that share a root


def test_two_studies_with_one_folder_leave_each_others_checkpoints_alone(
    store: Store, root: str
) -> None:
    run(store, surpassed("flowers"), root)
    before = owners(store, "flowers")
    run(store, surpassed("trees"), root)
    assert owners(store, "flowers") == before == dict.fromkeys(before, "flowers")
    assert len(before) == len(owners(store, "trees")) == 10
    assert unusable(store) == []


def test_the_same_study_in_another_database_has_a_folder_of_its_own(
    store: Store, root: str, tmp_path: Path
) -> None:
    first = run(store, surpassed("flowers"), root, whose="here")
    with closing(Store.open(f"sqlite:///{tmp_path}/other.db")) as other:
        second = run(other, surpassed("flowers"), root, whose="there")
        assert set(owners(other, "flowers").values()) == {"there"}
    assert set(owners(store, "flowers").values()) == {"here"}
    assert first.folder != second.folder
    assert unusable(store) == []


def test_a_study_that_takes_the_name_of_one_that_was_removed_touches_nothing_of_it(
    store: Store, root: str
) -> None:
    first = run(store, surpassed("flowers"), root)
    left = trial_folders(first.folder)
    store.delete_study(store.find_study("flowers").id)
    second = run(store, surpassed("flowers"), root, whose="the second")
    assert trial_folders(first.folder) == left
    assert len(left) == 10
    assert second.folder != first.folder
    assert set(owners(store, "flowers").values()) == {"the second"}


def test_the_folders_of_a_disk_behind_a_url_are_as_good(store: Store, tmp_path: Path) -> None:
    home = run(store, surpassed("flowers"), f"file://{tmp_path}/shared")
    run(store, surpassed("trees"), f"file://{tmp_path}/shared")
    assert set(owners(store, "flowers").values()) == {"flowers"}
    assert len(trial_folders(home.folder)) == 10
    assert unusable(store) == []


def test_only_trials_that_keep_a_checkpoint_have_files_at_the_end(store: Store, root: str) -> None:
    home = run(store, surpassed("flowers"), root)
    kept = [f"trial-{number:05d}" for number in owners(store, "flowers")]
    assert trial_folders(home.folder) == kept
    assert mark_of(home.folder) == home.mark


# -------------------------------------------------------------------------------------------------
# names and marks


@pytest.mark.parametrize(
    ("study", "readable"),
    [
        ("flowers", "flowers"),
        ("a b/c\\d:e", "a-b-c-d-e"),
        ("..", "study"),
        ("", "study"),
        ("花の名前", "花の名前"),
        ("x\0\udc80\n#?%*", "x"),
        ("n" * 300, "n" * 60),
    ],
)
def test_a_folder_has_a_name_that_people_and_file_systems_read(
    study: str, readable: str, tmp_path: Path
) -> None:
    name = folder_name(study, "0123456789abcdef")
    assert name == f"{readable}-0123456789ab"
    (tmp_path / name).mkdir()


def test_the_longest_name_of_the_widest_letters_fits(tmp_path: Path) -> None:
    name = folder_name("\N{CJK UNIFIED IDEOGRAPH-20000}" * 300, "0123456789abcdef")
    assert len(name.encode()) <= 255
    (tmp_path / name).mkdir()


def test_a_folder_of_another_study_is_refused_with_its_name(store: Store, root: str) -> None:
    home = run(store, surpassed("flowers"), root)
    with pytest.raises(UserError, match="another study, flowers") as refused:
        folder_of_new(surpassed("trees"), home.folder)
    assert "--checkpoints" in str(refused.value)
    with pytest.raises(UserError, match="another study, flowers"):
        StudyFolder(Mark("trees", "another"), home.folder).claim()
    assert mark_of(home.folder) == home.mark


def test_a_study_may_be_given_its_own_folder(store: Store, root: str) -> None:
    home = run(store, surpassed("flowers"), root)
    record = store.find_study("flowers")
    for asked_for in (None, home.folder, root):
        assert folder_of(surpassed("flowers"), record, asked_for) == home


@pytest.mark.parametrize("content", ["", "{", "[]", '{"study": "flowers"}', "\udcff"])
def test_a_mark_that_cannot_be_read_is_nobodys(root: str, content: str) -> None:
    folder_at(root).write(MARKER, "")
    files = folder_at(root)
    files.write(MARKER, content.encode("utf-8", "replace").decode())
    with pytest.raises(UserError, match=r"the mark .* cannot be read"):
        folder_in(root, "flowers", "1")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="checkpoints cannot be kept at"):
        StudyFolder(Mark("flowers", "1"), str(tmp_path / "file" / "below")).claim()


# -------------------------------------------------------------------------------------- drivers
# that die, and resumes


def test_a_driver_that_died_before_it_marked_the_folder_is_followed_by_one_that_does(
    store: Store, root: str
) -> None:
    spec = surpassed("flowers")
    home = folder_of_new(spec, root)
    create_study(store, spec, home.folder, home.mark.uid)
    assert mark_of(home.folder) is None
    history = store.load("flowers")
    assert folder_of(spec, history.study, None) == home
    drive(store, spec, history, home, whose="flowers")
    assert mark_of(home.folder) == home.mark
    assert unusable(store) == []


def test_a_resumed_study_goes_on_in_its_folder(store: Store, root: str) -> None:
    spec = surpassed("flowers")
    first = run(store, spec, root, stop_after=10)
    history = store.load("flowers")
    waiting = [
        trial.number for trial in history.trials if trial.state is State.QUEUED and trial.checkpoint
    ]
    assert waiting
    home = folder_of(spec, history.study, None)
    saving = drive(store, spec, history, home, whose="flowers")
    assert home == first
    assert all(saving.began[number] > 0 for number in waiting)
    assert store.find_study("flowers").former_checkpoints == []


def test_a_study_that_has_a_folder_is_not_moved(store: Store, tmp_path: Path) -> None:
    spec = surpassed("flowers")
    first = run(store, spec, str(tmp_path / "one"), stop_after=10)
    record = store.find_study("flowers")
    for same in (str(tmp_path / "one"), first.folder):
        assert folder_of(spec, record, same) == first
    with pytest.raises(UserError, match="and cannot move"):
        folder_of(spec, record, str(tmp_path / "two"))


# -------------------------------------------------------------------------------------- studies of
# earlier versions


def test_an_old_study_goes_on_from_its_checkpoints_and_removes_nothing_of_what_others_may_have(
    store: Store, root: str
) -> None:
    spec = surpassed("flowers")
    an_old_study(store, root, "flowers", stop_after=10)
    folder_at(f"{root}/trial-00005").write("another", "study's")
    before = trial_folders(root)
    history = store.load("flowers")
    assert history.study.uid is None
    waiting = [
        trial.number for trial in history.trials if trial.state is State.QUEUED and trial.checkpoint
    ]
    home = folder_of(spec, history.study, None)
    saving = drive(store, spec, history, home, whose="flowers")
    assert waiting
    assert all(saving.began[number] > 0 for number in waiting)
    assert trial_folders(root) == before
    record = store.find_study("flowers")
    assert record.uid == home.mark.uid
    assert folders_of(record) == [home.folder, root]
    assert home.folder.startswith(f"{root}/flowers-")
    assert unusable(store) == []
    assert len(owners(store, "flowers")) == 10


def test_two_drivers_that_give_an_old_study_its_folder_agree_on_one(
    store: Store, root: str
) -> None:
    spec = surpassed("flowers")
    an_old_study(store, root, "flowers", stop_after=10)
    slow = store.load("flowers")
    late = folder_of(spec, slow.study, None)
    history = store.load("flowers")
    drive(store, spec, history, folder_of(spec, history.study, None), whose="flowers", stop_after=1)
    with pytest.raises(StudyHeld, match="another driver"):
        drive(store, spec, slow, late, whose="flowers")
    assert mark_of(late.folder) is None


def test_the_uid_survives_every_commit(store: Store, root: str) -> None:
    home = run(store, surpassed("flowers"), root)
    assert store.find_study("flowers").uid == store.load("flowers").study.uid == home.mark.uid
    said = json.loads(folder_at(home.folder).text(MARKER) or "")
    assert said == {"study": "flowers", "uid": home.mark.uid}


def test_a_copied_folder_is_refused(store: Store, tmp_path: Path) -> None:
    home = run(store, surpassed("flowers"), str(tmp_path))
    record = replace(store.find_study("flowers"), uid="another")
    with pytest.raises(UserError, match="another study, flowers"):
        folder_of(surpassed("flowers"), record, None)
    assert mark_of(home.folder) == home.mark


def test_checkpoints_go_beside_the_study_file_by_default(tmp_path: Path) -> None:
    assert checkpoint_root(spec_of(tmp_path), None) == str(tmp_path / "hpsearch-studies")
    home = folder_of_new(spec_of(tmp_path), None)
    assert home.folder == str(tmp_path / "hpsearch-studies" / f"flowers-{home.mark.uid[:12]}")


def test_a_relative_folder_of_the_study_file_starts_there_and_one_asked_for_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(tmp_path / "studies", "checkpoints: saved")
    monkeypatch.chdir(tmp_path)
    assert checkpoint_root(spec, None) == str(tmp_path / "studies" / "saved")
    assert checkpoint_root(spec, "elsewhere") == str(tmp_path / "elsewhere")


def test_a_folder_may_stand_beside_its_limit(tmp_path: Path) -> None:
    both = spec_of(tmp_path, "checkpoints: {folder: saved, max_gb: 20}")
    assert checkpoint_root(both, None) == str(tmp_path / "saved")
    limit = spec_of(tmp_path, "checkpoints: {max_gb: 0.5}")
    assert checkpoint_root(limit, None) == str(tmp_path / "hpsearch-studies")
    assert (both.checkpoints.max_gb, limit.checkpoints.max_gb) == (20, 0.5)


@pytest.mark.parametrize("url", ["memory://studies/flowers", "file:///mnt/studies/flowers"])
def test_a_url_stays_a_url_to_the_folder_of_every_trial(tmp_path: Path, url: str) -> None:
    for folder in (
        checkpoint_root(spec_of(tmp_path), url),
        checkpoint_root(spec_of(tmp_path, f"checkpoints: {url}/"), None),
    ):
        assert folder == url
        config = worker_config(spec_of(tmp_path), folder)
        assert config.folder(3) == f"{url}/trial-00003"


def test_a_url_that_nothing_here_can_write_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match="nonsense://bucket") as refused:
        checkpoint_root(spec_of(tmp_path), "nonsense://bucket")
    assert "give a folder that all workers share" in str(refused.value)
