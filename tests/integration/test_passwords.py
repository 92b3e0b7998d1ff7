"""The database's password stays with the driver: nothing that is said, stored, exported or started
has it."""

import json
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from sqlalchemy import make_url

from hpsearch.cli.main import main
from support.patience import PATIENCE_S
from support.running.programs import run_program

SECRET = f"s3cret-{uuid.uuid4().hex}"
"""Not that of another run of these tests, whose processes are seen as well."""

TASK = """
import os
from pathlib import Path

import ray


def command_lines():
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode(errors="replace")
        except OSError:
            continue  # it has ended
        if "hpsearch.cli.main" not in text:  # what the user has typed
            found.append(text)
    return "".join(found)


def train(params, trial):
    own, parent = (Path(f"/proc/{process}/environ").read_text() \
for process in ("self", os.getppid()))
    (raylet,) = [
        each.partition("=")[2] for each in parent.split("\\0") if each.startswith("RAY_RAYLET_PID=")
    ]
    words = Path(f"/proc/{raylet}/cmdline").read_text().split("\\0")
    (head,) = [word.partition("=")[2] for word in words if word.startswith("--gcs-address=")]
    cluster = ray._private.state.GlobalState()
    cluster._initialize_global_state(ray._raylet.GcsClientOptions.create(
        head, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=False))
    jobs = repr(cluster.job_table())
    told = repr(dict(os.environ)) + own + parent + command_lines() + jobs
    (Path(__file__).parent / "environment").write_text(told)
    trial.report(1, {"loss": params["x"]})
"""

STUDY: dict[str, Any] = {
    "study": "toy",
    "task": {"kind": "toy_task:train"},
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 1, "per_trial": {"epochs": 1}},
    "resources": {"workers": 1},
}

COMMANDS = [
    *(
        ("ls",),
        ("status", "toy"),
        ("best", "toy", "--format", "json"),
        ("trials", "toy"),
        ("show", "toy", "0"),
        ("report", "toy"),
    ),
    *(
        ("export", "toy", "--to", f"{what}.csv", "--what", what)
        for what in ("trials", "reports", "attempts")
    ),
    *(
        ("db", "check"),
        ("status", "nothing"),
        ("run", "study.yaml"),
        ("db", "upgrade"),
        ("stop", "toy"),
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study file and its task, where commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy_task.py").write_text(TASK)
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY))
    return tmp_path


@pytest.mark.parametrize(
    "command", [*COMMANDS, ("rm", "toy", "--yes"), ("dashboard", "toy"), ("resume", "toy")]
)
@pytest.mark.parametrize("given", ["option", "variable"])
def test_a_server_that_is_not_there_is_told_without_the_password(
    command, given, folder, monkeypatch, capsys, caplog
):
    url = f"postgresql://someone:{SECRET}@127.0.0.1:1/db?sslpassword={SECRET}"
    if given == "variable":
        monkeypatch.setenv("HPSEARCH_STORAGE", url)
    with caplog.at_level("DEBUG"), pytest.raises(SystemExit) as ended:
        main(command if given == "variable" else (*command, "--storage", url))
    said = capsys.readouterr()
    assert ended.value.code == 3, said.err
    assert "postgresql://someone:***@127.0.0.1:1/db" in said.err
    assert SECRET not in said.out + said.err + caplog.text


@pytest.mark.cases(1)
@pytest.mark.parametrize("given", ["option", "variable"])
def test_a_study_leaves_its_password_nowhere(given, folder, postgresql_url, monkeypatch, capsys):
    url = make_url(postgresql_url).set(password=SECRET).render_as_string(hide_password=False)
    monkeypatch.setenv("HPSEARCH_STORAGE", url)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    hook = f"http://127.0.0.1:1/{SECRET}"
    options = ["--storage", url, "--notify", hook] if given == "option" else []
    if given == "variable":
        monkeypatch.setenv("HPSEARCH_NOTIFY", hook)
    program = [sys.executable, "-c", "from hpsearch.cli.main import main; main()", "run"]
    with tempfile.TemporaryDirectory(prefix="ray-") as session:  # short, as its sockets need
        monkeypatch.setenv("RAY_TMPDIR", session)
        done = run_program([*program, "study.yaml", *options], cwd=folder, timeout=PATIENCE_S)
        written = [path for path in Path(session).rglob("*") if path.is_file()]
        assert written
        leaks = [path for path in written if SECRET.encode() in path.read_bytes()]
    assert done.returncode == 0, done.stderr
    assert not leaks
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main(command)
    said = capsys.readouterr()
    assert "finished" in said.out
    assert "no problems found" in said.out + said.err
    assert SECRET not in done.stdout + done.stderr + said.out + said.err
    assert "HOME" in (folder / "environment").read_text()
    for path in folder.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in json.dumps(rows(postgresql_url), default=str)


def rows(url: str) -> list[Any]:
    """All rows of all our tables."""
    with psycopg.connect(url) as connection:
        named = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        ).fetchall()
        assert len(named) >= 6
        return [
            connection.execute(f"SELECT * FROM {name}".encode()).fetchall() for (name,) in named
        ]
