"""What users' programs leave in a folder: copied, moved and removed without following links."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trials.disk import trees

NOBODY = 65534


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with whatever may be copied."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("private")
    (outside / "key").chmod(0o600)
    root = tmp_path / "source"
    (root / "step-1" / "empty").mkdir(parents=True)
    (root / "step-1" / "model").write_text("weights")
    (root / "run.sh").write_text("true")
    (root / "run.sh").chmod(0o755)
    (root / "secret").write_text("mine")
    (root / "secret").chmod(0o600)
    (root / "again").hardlink_to(root / "secret")
    (root / os.fsdecode(b"caf\xe9\nand more")).write_text("named")
    (root / "latest").symlink_to(root / "step-1")
    (root / "step-1" / "up").symlink_to(root / "run.sh")
    (root / "itself").symlink_to(root)
    (root / "circle").symlink_to("circle")
    (root / "gone").symlink_to("nothing")
    (root / "key").symlink_to(outside / "key")
    (root / "step-1").chmod(0o555)
    return root


LINKS = {
    "latest": "step-1",
    "step-1/up": "../run.sh",
    "itself": ".",
    "circle": "circle",
    "gone": "nothing",
}


def links_in(root: Path) -> dict[str, str]:
    return {
        each.name: os.fspath(each.path.readlink()) for each in trees.entries(root) if each.is_link
    }


def contents(root: Path) -> dict[str, tuple[int, int, str]]:
    """The modes, times and contents of files, by name."""
    return {
        each.name: (each.facts.st_mode, each.facts.st_mtime_ns, each.path.read_text())
        for each in trees.entries(root)
        if each.is_file
    }


def test_a_copy_has_the_same_files_modes_and_times_and_its_links_stay_inside(
    source: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside" / "key"
    target = tmp_path / "copy"
    assert trees.copy(source, target) == {}
    assert contents(target) == contents(source)
    assert links_in(target) == {**LINKS, "key": str(outside)}
    assert stat.S_IMODE((target / "step-1").stat().st_mode) == 0o555
    assert (target / "secret").samefile(target / "again")
    assert not (target / "secret").samefile(source / "secret")
    assert stat.S_IMODE(outside.stat().st_mode) == 0o600


def test_what_is_removed_is_not_what_its_links_name(source: Path, tmp_path: Path) -> None:
    assert trees.remove(source) is None
    assert trees.remove(source) is None
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (tmp_path / "outside" / "key").read_text() == "private"
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "outside")
    assert isinstance(trees.remove(link), NotADirectoryError)
    assert (tmp_path / "outside" / "key").exists()


def test_pipes_and_sockets_are_never_opened_and_what_was_left_out_is_said(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    os.mkfifo(root / "a\npipe")
    (root / "state").write_text("1")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "server"))
        assert not trees.settle(root)
        left_out = trees.copy(root, tmp_path / "copy")
    assert trees.told(left_out) == r"'a\npipe' (a named pipe), 'server' (a socket)"
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["state"]
    many = {str(number): "a device" for number in range(7)}
    assert trees.told(many).endswith("'4' (a device) and 2 more")


def test_holes_stay_holes(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    size = 3 << 30
    with (tmp_path / "root" / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 30)
        file.write(b"middle")
        file.truncate(size)
    trees.copy(tmp_path / "root", tmp_path / "copy")
    copied = (tmp_path / "copy" / "sparse").stat()
    assert copied.st_size == size
    assert copied.st_blocks * 512 < 1 << 20
    with (tmp_path / "copy" / "sparse").open("rb") as file:
        assert file.read(6) == b"begin\0"
        file.seek(1 << 30)
        assert file.read(7) == b"middle\0"


@pytest.mark.parametrize(("change", "content"), [("gone", None), ("grown", "12"), ("cut", "1")])
def test_a_file_that_changes_meanwhile_is_copied_as_it_is_then_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, content: str | None
) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "state").write_text("12")
    found = trees.entries
    read = os.lseek

    def entries(root: Path, left_out: trees.LeftOut) -> Iterator[trees.TreeEntry]:
        for each in found(root, left_out):
            if change == "gone":
                each.path.unlink()
            yield each

    def lseek(file: int, at: int, how: int) -> int:
        if change == "grown":
            (tmp_path / "root" / "state").write_text("1234")
        if change == "cut" and how == os.SEEK_HOLE:
            found_end = read(file, at, how)
            (tmp_path / "root" / "state").write_text("1")
            return found_end
        return read(file, at, how)

    monkeypatch.setattr(trees, "entries", entries)
    monkeypatch.setattr(os, "lseek", lseek)
    assert trees.copy(tmp_path / "root", tmp_path / "copy") == {}
    copied = tmp_path / "copy" / "state"
    assert (copied.read_text() if copied.exists() else None) == content


def deep_in(root: Path, levels: int, name: str) -> None:
    """Make folders in folders, also below what a path can name."""
    at = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_CREAT, dir_fd=at))
    os.close(at)


@pytest.mark.parametrize(
    ("levels", "name", "why"),
    [(1500, "d", "more than 200 folders deep"), (30, "d" * 200, "File name too long")],
)
def test_a_folder_too_deep_to_be_named_is_left_out_and_can_be_removed(
    tmp_path: Path, levels: int, name: str, why: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "state").write_text("1")
    deep_in(root, levels, name)
    left_out = trees.copy(root, tmp_path / "copy")
    assert list(left_out.values()) == [why]
    assert (tmp_path / "copy" / "state").read_text() == "1"
    assert trees.settle(tmp_path / "copy")
    for folder in (root, tmp_path / "copy"):
        assert trees.remove(folder) is None
    assert list(tmp_path.iterdir()) == []


def outside_name(root: Path) -> None:
    (root.parent / "elsewhere").hardlink_to(root / "state")


@pytest.mark.parametrize(
    ("make", "is_settled"),
    [
        (lambda root: (root / "latest").symlink_to(root / "state"), True),
        (lambda root: (root / "same").hardlink_to(root / "state"), True),
        (lambda root: os.mkfifo(root / "pipe"), False),
        (outside_name, False),
    ],
)
def test_a_folder_is_moved_as_it_is_where_nothing_has_to_be_left_out(
    tmp_path: Path, make: Callable[[Path], None], is_settled: bool
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "state").write_text("1")
    make(root)
    assert trees.settle(root) is is_settled
    if (root / "latest").is_symlink():
        assert (root / "latest").readlink() == Path("state")


AS_A_USER = """
import os, sys
from pathlib import Path
from trials.disk import trees
base, user = Path(sys.argv[1]), int(sys.argv[2])
if os.getuid() == 0:
    os.chown(base, user, user)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
root = base / "root"
for name in ("closed", "fixed/inside"):
    (root / name).mkdir(parents=True)
    (root / name / "file").write_text("x")
(root / "fixed" / "link").symlink_to(root / "fixed" / "inside")
(root / "unreadable").write_text("x")
for name, mode in {"unreadable": 0, "closed": 0, "fixed/inside": 0o555, "fixed": 0o555}.items():
    (root / name).chmod(mode)
assert not trees.settle(root)
left_out = trees.copy(root, base / "copy")
assert left_out == {"closed": "Permission denied", "unreadable": "Permission denied"}, left_out
assert (base / "copy" / "fixed" / "inside" / "file").read_text() == "x"
assert os.readlink(base / "copy" / "fixed" / "link") == "../fixed/inside"
assert trees.settle(base / "copy")
(base / "copy").chmod(0o555)
assert not trees.settle(base / "copy")
for name in ("root", "copy"):
    assert trees.remove(base / name) is None
assert os.listdir(base) == []
"""


def test_what_a_user_may_not_read_is_left_out_and_what_may_not_be_written_is_removed() -> None:
    """As another user where the tests run as root, whom no mode keeps out."""
    with tempfile.TemporaryDirectory() as base:
        command = [sys.executable, "-c", AS_A_USER, base, str(NOBODY)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
