"""`.ci/run`: every section runs, each outcome is told, and one that fails makes the whole fail.

The checks before a commit are those of `make check`.
"""

import os
import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml

from support.running.programs import run_program

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / ".ci" / "run"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the script, and programs that write down how they are called."""
    programs = {
        "bin/make": 'echo "make $1 postgresql=$HPSEARCH_TESTS_REQUIRE_POSTGRESQL" >> "$LOG"\n'
        '[ "$1" != "$FAILING" ]',
        "bin/python3": "exit 0",
        "bin/pg_config": 'echo "$(dirname "$0")"',
        "bin/initdb": "echo initdb",
        **{f"bin/{each}": "exit 0" for each in ("slurmctld", "slurmd", "munged", "pgbouncer")},
        "bin/ip": "exit 0",
        "build/trackers/bin/python": 'echo "trackers required=$HPSEARCH_TESTS_REQUIRE_TRACKERS $*" '
        '>> "$LOG"',
        "docker/check.sh": 'echo check.sh >> "$LOG"',
        ".ci/packages": 'echo packages >> "$LOG"',
    }
    for name, script in programs.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    shutil.copy(SCRIPT, tmp_path / ".ci" / "run")
    return tmp_path


def run(project: Path, *arguments: str, failing: str = "nothing") -> tuple[int, str, list[str]]:
    """Exit code, output, and the calls of programs in order."""
    log = project / "log"
    done = run_program(
        [str(project / ".ci" / "run"), *arguments],
        env={
            "PATH": f"{project / 'bin'}:{os.environ['PATH']}",
            "LOG": str(log),
            "FAILING": failing,
        },
        cwd="/",
    )
    return done.returncode, done.stdout, log.read_text().splitlines()


def test_tests_and_checks_and_install_steps_all_run(project):
    code, output, calls = run(project)
    assert code == 0
    names = [" ".join(call.split()[:2]) for call in calls]
    assert {*names[:2]} == {"make .venv/.ready", "check.sh"}, "they install before the tests"
    after = names[names.index("make test") :]
    assert {"make test-processors", "packages", "trackers required=1"} <= {*after}
    assert Counter(names[2:]) == {
        "make test": 1,
        "make test-processors": 1,
        "packages": 1,
        "make check": 1,
        "make docs": 1,
        "trackers required=1": 2,  # installed, then tested
    }
    assert output.count("passed") == 10
    assert "not audited" in output, "and that is no failure"
    assert "FAILED" not in output


def test_the_tests_of_postgresql_must_not_be_skipped(project):
    _, _, calls = run(project)
    assert "make test postgresql=1" in calls


def test_before_a_release_every_test_runs(project):
    code, _, calls = run(project, "--thorough")
    assert code == 0
    assert "make test-all postgresql=1" in calls


def test_a_failing_section_is_named_fails_the_whole_and_lets_the_others_run(project):
    code, output, calls = run(project, failing="test")
    assert code == 1
    summary = output.split("===== summary")[1].splitlines()
    assert [line.split()[0] for line in summary if line] == [
        *["passed"] * 3,
        "FAILED",
        *["passed"] * 6,
    ]
    assert "check.sh" in calls


def test_a_section_that_runs_beside_others_fails_the_whole_too(project):
    code, output, _ = run(project, failing="check")
    assert code == 1
    (failed,) = [line for line in output.splitlines() if line.startswith("FAILED")]
    assert failed.endswith("lint, types, import contracts")


def test_the_hooks_before_a_commit_run_what_make_check_runs():
    recipe = re.search(
        r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE
    )
    assert recipe
    *checks, size = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = [" ".join([hook["entry"], *hook.get("args", [])]) for hook in repository["hooks"]]
    assert hooks == checks
    assert size.endswith("density.py")  # a limit is looked at before a merge, not before a commit


def test_the_workflow_runs_the_same_script_on_every_python_that_is_supported():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    job = workflow["jobs"]["run"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [
        each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each
    ]
    assert job["strategy"]["matrix"]["python"] == supported
    assert f">={supported[0]}" == project["requires-python"]
    *uses, step = job["steps"]
    assert step == {"run": ".ci/run"}
    assert all(re.fullmatch(r"[\w/]+@[0-9a-f]{40}", each["uses"]) for each in uses)
