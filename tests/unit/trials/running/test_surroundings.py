"""A process finds a home, a name and a temporary folder for sockets on every machine."""

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from support.running.programs import run_program
from trials.running import surroundings

PROGRAM = """
import getpass, json, multiprocessing, os, pathlib, tempfile
from trials.running import surroundings
surroundings.settle()
surroundings.settle()
home = pathlib.Path.home()
(home / ".cache").mkdir(exist_ok=True)
listener = multiprocessing.connection.Listener(family="AF_UNIX")
listener.close()
found = [getpass.getuser(), str(home), tempfile.gettempdir(), os.environ.get("RAY_TMPDIR")]
print(json.dumps(found))
"""
PROGRAM = PROGRAM.replace("import getpass", "import multiprocessing.connection, getpass")


def found(env: dict[str, str], *before: str) -> tuple[str, Path, Path, str | None]:
    """The name, home, temporary folder and that of Ray in a process with this environment alone."""
    paths = os.pathsep.join(path for path in sys.path if path)
    everything = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, **env}
    done = run_program([*before, sys.executable, "-c", PROGRAM], env=everything, cwd="/")
    assert done.returncode == 0, done.stderr
    name, home, temporary, of_ray = json.loads(done.stdout)
    return name, Path(home), Path(temporary), of_ray


def without_a_name(monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    """Be a user that no file knows, without a home."""

    def unknown(*_: object) -> str:
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "ada")  # so that it is put back
        monkeypatch.delenv(name)


@pytest.mark.parametrize("home", [None, "/proc", "/nonexistent", "relative"])
def test_who_has_no_home_and_no_name_gets_both(home, tmp_path, monkeypatch):
    without_a_name(monkeypatch, os.getuid())
    monkeypatch.setenv("TMPDIR", str(tmp_path)[:38])
    monkeypatch.setattr(tempfile, "tempdir", None)
    if home is not None:
        monkeypatch.setenv("HOME", home)
        monkeypatch.setattr("os.access", lambda place, _: str(place) != home)
    surroundings.settle()
    given = Path(os.environ["HOME"])
    assert given == Path(tempfile.gettempdir()) / f"hpsearch-{os.getuid()}-home"
    assert given.stat().st_mode & 0o777 == 0o700
    assert os.environ["USER"] == os.environ["LOGNAME"] == str(os.getuid())


def test_what_a_home_hides_that_cannot_be_written_is_found_in_the_new_one(tmp_path, monkeypatch):
    home, own = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    own.mkdir()
    (home / ".pgpass").write_text("db:5432:*:ada:secret")
    monkeypatch.setattr("os.access", lambda place, _: place != home)
    monkeypatch.setattr(surroundings, "_shorten", lambda variable: None)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(own))
    surroundings.settle()
    assert Path("~/.pgpass").expanduser().read_text().endswith("secret")
    assert Path.home() != home


def test_a_home_that_can_be_written_stays(tmp_path):
    env = {"HOME": str(tmp_path), "USER": "ada", "TMPDIR": "/tmp", "RAY_TMPDIR": "/tmp"}
    assert found(env) == ("ada", tmp_path, Path("/tmp"), "/tmp")


def test_a_long_temporary_folder_gets_a_short_name_for_sockets(tmp_path):
    long = tmp_path / ("a/rather/long/name/" * 6)
    long.mkdir(parents=True)
    env = {"HOME": str(tmp_path), "USER": "ada", "TMPDIR": str(long), "RAY_TMPDIR": str(long)}
    _, _, temporary, of_ray = found(env)
    assert len(str(temporary)) <= surroundings.LONGEST
    assert temporary.resolve() == long.resolve()
    assert of_ray == str(temporary)
    assert found(env)[2] == temporary, "another process finds the same one"
    for folder in sorted(tmp_path.rglob("*"), reverse=True):
        folder.rmdir() if folder.is_dir() and not folder.is_symlink() else folder.unlink()
    other = tmp_path / ("another/rather/long/name/" * 4)
    other.mkdir(parents=True)
    found({**env, "TMPDIR": str(other), "RAY_TMPDIR": ""})
    assert not temporary.is_symlink(), "links to folders that are gone are removed"


def test_a_folder_of_somebody_else_is_not_used(tmp_path):
    (tmp_path / f"hpsearch-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"hpsearch-{os.getuid()}").chmod(0o777)
    own = surroundings._own_folder(tmp_path)
    assert own != tmp_path / f"hpsearch-{os.getuid()}"
    assert own.stat().st_mode & 0o777 == 0o700
