"""What users' programs leave in a folder: copied and removed without following links."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trials.checkpoints.disk import trees

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
    (root / os.fsdecode(b"caf\xe9\nand more")).write_text("named")
    (root / "latest").symlink_to(root / "step-1")
    (root / "step-1" / "up").symlink_to(root / "run.sh")
    (root / "circle").symlink_to("circle")
    (root / "gone").symlink_to("nothing")
    (root / "key").symlink_to(outside / "key")
    return root


LINKS = {"latest": "step-1", "step-1/up": "../run.sh", "circle": "circle", "gone": "nothing"}


def links_in(root: Path) -> dict[str, str]:
    return {name: os.fspath(link.readlink()) for name, link in trees.links_in(root).items()}


def contents(root: Path) -> dict[str, tuple[int, int, str]]:
    """The modes, times and contents of files, by name."""
    return {
        name: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_text())
        for name, path in trees.files_in(root).items()
    }


def test_a_copy_has_the_same_files_modes_and_times_and_its_links_stay_inside(source, tmp_path):
    outside = tmp_path / "outside" / "key"
    target = tmp_path / "copy"
    trees.copy(source, target)
    assert contents(target) == contents(source)
    assert links_in(target) == {**LINKS, "key": str(outside)}
    assert stat.S_IMODE(outside.stat().st_mode) == 0o600


def test_what_is_removed_is_not_what_its_links_name(source, tmp_path):
    assert trees.remove(source) is None
    assert trees.remove(source) is None
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "outside")
    assert isinstance(trees.remove(link), OSError)
    assert (tmp_path / "outside" / "key").read_text() == "private"


def test_pipes_and_sockets_are_never_opened_and_left_out(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    os.mkfifo(root / "pipe")
    (root / "state").write_text("1")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "server"))
        trees.copy(root, tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["state"]


AS_A_USER = """
import os, sys
from pathlib import Path
from trials.checkpoints.disk import trees
base, user = Path(sys.argv[1]), int(sys.argv[2])
if os.getuid() == 0:
    os.chown(base, user, user)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
root = base / "root"
(root / "fixed" / "inside").mkdir(parents=True)
(root / "fixed" / "inside" / "file").write_text("x")
for name in ("fixed/inside", "fixed"):
    (root / name).chmod(0o555)
assert trees.remove(root) is None
assert os.listdir(base) == []
"""


def test_folders_that_may_not_be_written_are_removed():
    """As another user where the tests run as root, whom no mode keeps out."""
    with tempfile.TemporaryDirectory() as base:
        command = [sys.executable, "-c", AS_A_USER, base, str(NOBODY)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_modes_are_never_changed_through_a_link(tmp_path):
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    for folder in (outside / "inner", outside):
        folder.chmod(0o750)
    link = tmp_path / "link"
    link.symlink_to(outside)
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o640)
    for path in (link, file):
        assert isinstance(trees.remove(path), OSError)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (outside, outside / "inner", file)]
    assert modes == [0o750, 0o750, 0o640]
