"""A database that may be read and not written: it is read, and writing to it is refused with the
file and what to do."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.store.store import Store
from support.patience import PATIENCE_S
from support.running.programs import run_program

STUDY = """
study: another
task: {kind: "toy_task:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 1, per_trial: {epochs: 1}}
"""
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of a closed database with one study, all of it for reading alone."""
    made = Path(
        tempfile.mkdtemp(prefix="read-only-")
    )  # pytest's own folder is closed to other users
    with closing(Store.open(f"sqlite:///{made}/study.db")) as store:
        record = store.create_study(StudyRecord(0, "flowers", STUDY, ("maximize",)))
        store.commit(record.id, Changes(trials=[Trial(0, State.COMPLETE, {"x": 0.5}, value=0.5)]))
    (made / "study.yaml").write_text(STUDY)
    (made / "toy_task.py").write_text(
        "def train(params, trial):\n    trial.report(1, {'loss': 1.0})\n"
    )
    for path in made.iterdir():
        path.chmod(0o444)
    made.chmod(0o555)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.fixture
def call(folder: Path) -> Call:
    """Runs a command as a user whom the permissions of files bind; skips where root cannot become
    one."""
    words = [] if os.geteuid() else NOBODY
    environment = {
        **os.environ,
        "HPSEARCH_STORAGE": f"sqlite:///{folder}/study.db",
        "HOME": "/nonexistent",
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return run_program([*words, *command], cwd=folder, env=environment, timeout=PATIENCE_S)

    if words and shutil.which(words[0]) is None:
        pytest.skip("there is no setpriv to be another user than root with")
    if run(sys.executable, "-c", "import hpsearch").returncode != 0:
        pytest.skip("another user than root may not read this Python and hpsearch")
    return lambda *arguments: run(
        sys.executable, "-c", "from hpsearch.cli.main import main; main()", *arguments
    )


@pytest.mark.parametrize(
    "command",
    [pytest.param(("rm", "flowers", "--yes"), marks=pytest.mark.thorough), ("run", "study.yaml")],
)
def test_using_it_names_the_file_and_the_remedy(call, folder, command):
    before = (folder / "study.db").read_bytes()
    done = call(*command)
    assert done.returncode == 2, done.stderr
    assert f"{folder}/study.db: " in done.stderr
    assert "permission to write the file and its folder" in done.stderr
    assert "Traceback" not in done.stderr
    assert (folder / "study.db").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("ls",), ""),
        pytest.param(("status", "flowers"), "", marks=pytest.mark.thorough),
        pytest.param(("best", "flowers"), r"trained once: .*\n", marks=pytest.mark.thorough),
        pytest.param(("db", "check"), "no problems found\n", marks=pytest.mark.thorough),
    ],
)
def test_it_is_read_as_any_other(call, folder, command, said):
    done = call(*command)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(said, done.stderr), "nothing is said of the file"
    assert sorted(path.name for path in folder.iterdir()) == [
        "study.db",
        "study.yaml",
        "toy_task.py",
    ]
