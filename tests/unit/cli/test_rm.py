"""`hpsearch rm`: what it asks, what it removes, and what it leaves."""

import os
import pty
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hpsearch.errors import LeaseLost
from hpsearch.running.checkpoint_folders import MARKER, StudyFolder, folder_of, mark_of, trials_in
from hpsearch.running.driver.removal import remove_checkpoints
from hpsearch.store.store import Store
from support.studies.saved import an_old_study, drive, surpassed
from support.studies.saved import run as run_study
from trials.checkpoints.folders import folder_at

Run = Callable[..., Any]


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with closing(Store.open(sqlite_url)) as opened:
        yield opened


@pytest.fixture(params=["path", "memory"])
def home(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> StudyFolder:
    """The folder of a study of two trials, beside another study's."""
    root = f"{tmp_path}/shared" if request.param == "path" else f"memory://{uuid.uuid4().hex}"
    run_study(store, surpassed("trees", 2), root)
    return run_study(store, surpassed("flowers", 2), root)


def test_checkpoints_go_with_their_study_and_others_stay(run, store, home):
    other = store.find_study("trees").checkpoints
    said = run("rm", "flowers", "--yes")
    assert said.code == 0
    assert f"removed its checkpoints, of 2 trials, in {home.folder}" in said.err
    assert folder_at(home.folder).entries() == []
    assert trials_in(other) == [0, 1]
    assert store.study_names() == ["trees"]
    assert run("db", "check").code == 0


def test_a_moved_database_removes_its_checkpoints(run, store, sqlite_url, tmp_path):
    home = run_study(store, surpassed("flowers", 2), f"{tmp_path}/shared")
    store.close()
    moved = tmp_path / "moved.db"
    Path(sqlite_url.removeprefix("sqlite:///")).rename(moved)
    assert run("rm", "flowers", "--yes", "--storage", f"sqlite:///{moved}").code == 0
    assert folder_at(home.folder).entries() == []


def test_they_are_left_where_that_is_asked_for(run, store, home):
    said = run("rm", "flowers", "--yes", "--keep-checkpoints")
    assert said.code == 0
    assert f"its checkpoints are left in {home.folder}" in said.err
    assert trials_in(home.folder) == [0, 1]
    assert mark_of(home.folder) == home.mark
    assert store.study_names() == ["trees"]


def test_other_files_in_the_folder_are_left_and_said(run, home):
    folder_at(home.folder).write("notes.txt", "mine")
    assert "other files in it are left" in run("rm", "flowers", "--yes").err
    assert folder_at(home.folder).entries() == ["notes.txt"]


def test_what_a_link_in_the_folder_leads_to_is_left_as_it_is_and_said(run, store, tmp_path):
    home = run_study(store, surpassed("flowers", 2), f"{tmp_path}/studies")
    other = tmp_path / "other" / "inner"
    other.mkdir(parents=True)
    (other / "notes.txt").write_text("mine")
    for folder in (other, other.parent):
        folder.chmod(0o750)
    for name in ("trial-00001", "logs"):
        folder_at(home.folder).remove(name)
        (Path(home.folder) / name).symlink_to(other.parent)
    said = run("rm", "flowers", "--yes")
    assert said.code == 0, said.err
    assert f"left as it is: what {home.folder}/trial-00001, a link, led to" in said.err
    assert not Path(home.folder).exists()
    assert (other / "notes.txt").read_text() == "mine"
    assert [path.stat().st_mode & 0o777 for path in (other, other.parent)] == [0o750, 0o750]


@pytest.mark.parametrize("marked", ["nothing", "another study"])
def test_a_folder_without_its_mark_is_left_and_said(run, store, home, marked):
    if marked == "nothing":
        folder_at(home.folder).dissolve(MARKER)
    else:
        folder_at(home.folder).write(MARKER, '{"study": "trees", "uid": "1"}')
    said = run("rm", "flowers", "--yes")
    assert said.code == 0
    assert f"left as it is: {home.folder}" in said.err
    assert ("marked as the folder of another study, trees" in said.err) == (
        marked == "another study"
    )
    assert trials_in(home.folder) == [0, 1]
    assert store.study_names() == ["trees"]


def test_an_old_study_leaves_a_folder_that_others_may_share_and_takes_its_own(run, store, tmp_path):
    root, spec = str(tmp_path / "shared"), surpassed("flowers", 4)
    an_old_study(store, root, "flowers", stop_after=10)
    before = trials_in(root)
    said = run("rm", "flowers")
    assert "this would remove study flowers and all its trials\n" in said.err
    history = store.load("flowers")
    home = folder_of(spec, history.study, None)
    drive(store, spec, history, home, whose="flowers")
    said = run("rm", "flowers", "--yes")
    assert said.code == 0
    assert f"in {home.folder}" in said.err
    assert f"left as it is: {root} - it carries no mark of this study" in said.err
    assert trials_in(root) == before
    assert not Path(home.folder).exists()


def test_a_folder_that_is_not_there_on_this_machine_keeps_the_study(run, store, tmp_path):
    home = run_study(store, surpassed("flowers", 2), str(tmp_path / "mounted"))
    (tmp_path / "mounted").rename(tmp_path / "elsewhere")
    said = run("rm", "flowers", "--yes")
    assert said.code == 2
    assert f"has checkpoints in {home.folder}, which is not there on this machine" in said.err
    assert "--keep-checkpoints" in said.err
    assert store.study_names() == ["flowers"]
    assert run("rm", "flowers", "--yes", "--keep-checkpoints").code == 0
    assert store.study_names() == []


class StubbornStore(MemoryFileSystem):
    """A store that does not remove the second trial."""

    protocol = "stubborn"
    refuses = True

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        if self.refuses and "trial-00001" in path:
            raise RuntimeError("slow down")  # of no kind that this program knows
        super().rm(path, recursive, maxdepth)


def test_a_removal_that_fails_keeps_the_study_and_is_done_again(run, store, monkeypatch):
    fsspec.register_implementation("stubborn", StubbornStore, clobber=True)
    home = run_study(store, surpassed("flowers", 2), f"stubborn://{uuid.uuid4().hex}")
    said = run("rm", "flowers", "--yes")
    assert said.code == 2
    assert "trial-00001 could not be removed" in said.err
    assert "slow down" in said.err
    assert "hpsearch rm flowers removes the rest" in said.err
    assert mark_of(home.folder) == home.mark
    assert trials_in(home.folder) == [1]
    monkeypatch.setattr(StubbornStore, "refuses", False)
    assert run("rm", "flowers", "--yes").code == 0
    assert folder_at(home.folder).entries() == []
    assert store.study_names() == []


def test_a_removal_that_was_killed_before_the_study_was_gone_is_done_again(run, store, home):
    record = store.find_study("flowers")
    remove_checkpoints(record, named_in=lambda folder: True, go_on=lambda: None)
    assert trials_in(home.folder) == []
    assert run("rm", "flowers", "--yes").code == 0
    assert store.study_names() == ["trees"]
    assert folder_at(home.folder).entries() == []


def test_a_study_whose_driver_takes_over_in_the_middle_of_a_removal_keeps_the_rest(store, home):
    record = store.find_study("flowers")
    lease = store.acquire(record.id, "who removes", 0.0)

    def go_on() -> None:
        store.renew(lease, 1e5)
        store.release(lease)
        store.acquire(record.id, "a driver", 1e5)

    with pytest.raises(LeaseLost):
        remove_checkpoints(record, named_in=lambda folder: True, go_on=go_on)
    assert trials_in(home.folder) == [1]
    assert mark_of(home.folder) == home.mark


def test_a_study_that_is_driven_keeps_its_checkpoints(run, store, home):
    store.acquire(store.find_study("flowers").id, "host:123", 3600.0)
    for more in ((), ("--keep-checkpoints",)):
        said = run("rm", "flowers", "--yes", *more)
        assert said.code == 4
        assert "host:123" in said.err
    assert trials_in(home.folder) == [0, 1]


def in_a_terminal(
    answer: str, *arguments: str, storage: str, meanwhile: Callable[[], object] = lambda: None
) -> tuple[int, str]:
    """Run a command in a terminal, and return its exit code and all that the terminal showed.

    Args:
        answer: To its question.
        arguments: The command.
        storage: The database's URL.
        meanwhile: Called while the question is open.
    """
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from hpsearch.cli.main import main; main()", *arguments],
        env={**os.environ, "HPSEARCH_STORAGE": storage},
        stdin=its,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    shown = _shown_until(ours, "[y/N]")
    meanwhile()
    os.write(ours, f"{answer}\n".encode())
    shown += _shown_until(ours, None)
    os.close(ours)
    return process.wait(), shown


def _shown_until(terminal: int, text: str | None) -> str:
    """What a terminal shows until a text comes; without one, until the command has ended."""
    shown = b""
    while text is None or text.encode() not in shown:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    return shown.decode()


def test_in_a_terminal_it_asks(store, sqlite_url, tmp_path):
    home = run_study(store, surpassed("flowers", 2), str(tmp_path / "shared"))
    code, shown = in_a_terminal("n", "rm", "flowers", storage=sqlite_url)
    assert code == 0
    question = (
        f"remove study flowers, all its trials, and their checkpoints in {home.folder}? "
        "It cannot be undone."
    )
    assert question in shown
    assert "nothing was removed" in shown
    assert trials_in(home.folder) == [0, 1]
    assert store.study_names() == ["flowers"]
    code, shown = in_a_terminal("y", "rm", "flowers", storage=sqlite_url)
    assert code == 0
    assert store.study_names() == []
    assert not Path(home.folder).exists()


def test_elsewhere_it_wants_to_be_told_what_it_would_remove(run, home):
    said = run("rm", "flowers")
    assert said.code == 2
    assert (
        f"this would remove study flowers, all its trials, and their checkpoints in {home.folder}"
        in said.err
    )
    assert "hpsearch rm flowers --yes" in said.err
    kept = run("rm", "flowers", "--keep-checkpoints")
    assert "this would remove study flowers and all its trials" in kept.err
    assert "hpsearch rm flowers --yes --keep-checkpoints" in kept.err
    assert trials_in(home.folder) == [0, 1]
