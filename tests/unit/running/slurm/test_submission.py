"""The files of a study, and the calls of sbatch, by a program that writes down its arguments."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from hpsearch.errors import Unreachable, UserError
from hpsearch.running.slurm.submission import StudyJob, queued, submit

SBATCH = """
echo "$*" >> {folder}/calls
number=$(wc -l < {folder}/calls)
if [ "$number" = "$FAILS_AT" ]; then echo "sbatch: error: no such thing" >&2; exit 1; fi
echo "10$number;cluster"
"""
SQUEUE = """
if [ -z "$QUEUE" ]; then echo "squeue: error: no answer" >&2; exit 1; fi
echo "$QUEUE"
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyJob:
    """A study in a folder whose name needs quotes, and programs that stand in for SLURM's."""
    programs = {
        "sbatch": SBATCH.format(folder=tmp_path),
        "scancel": f'echo "scancel $*" >> {tmp_path}/calls',
        "squeue": SQUEUE,
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    studies = tmp_path / "my $studies"
    studies.mkdir()
    return StudyJob("s", studies / "study.yaml", "sqlite:////a b.db", 20.0, studies)


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def test_a_study_is_one_job_and_all_options_are_those_of_sbatch(
    job: StudyJob, tmp_path: Path
) -> None:
    submitted = submit(job, ["--nodes", "2", "-p", "gpu"], [])
    assert (submitted.driver, submitted.nodes) == ("101", None)
    assert calls(tmp_path) == [f"--parsable --nodes 2 -p gpu {job.script}"]


def test_an_array_is_nodes_and_the_job_of_the_driver_takes_less(
    job: StudyJob, tmp_path: Path
) -> None:
    options = ["--array", "1-8%2", "-pgpu", "--gres=gpu:1", "-c", "4", "--time", "1:00"]
    submitted = submit(job, options, ["--time=9:00"])
    assert (submitted.driver, submitted.nodes) == ("101", "102")
    driver, nodes = calls(tmp_path)
    assert driver == f"--parsable -pgpu --time 1:00 --time=9:00 {job.script} head"
    together = "--job-name=hpsearch-s-101 --dependency=after:101"
    assert nodes == f"--parsable {' '.join(options)} {together} {job.script} node 101"


def test_a_driver_whose_nodes_are_refused_is_cancelled(
    job: StudyJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS_AT", "2")
    with pytest.raises(UserError, match="did not accept the job: sbatch: error: no such thing"):
        submit(job, ["--array=1-9"], [])
    assert calls(tmp_path)[-1] == "scancel 101"


def test_options_for_a_driver_that_has_no_job_of_its_own_are_refused(job: StudyJob) -> None:
    with pytest.raises(UserError, match="which only --array has"):
        submit(job, ["--nodes=2"], ["--time=9:00"])


def test_the_script_is_one_that_bash_reads_and_nobody_else(job: StudyJob) -> None:
    submit(job, [], [])
    subprocess.run(["bash", "-n", str(job.script)], check=True)
    settings = job.script.read_text().split("# Without an argument")[0]
    shown = subprocess.run(
        ["bash", "-c", f'{settings}echo "$folder|$HPSEARCH_STORAGE|$save_s|$PATH"'],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    folder, storage, save_s, path = shown.split("|")
    assert (folder, storage, save_s) == (str(job.folder), job.storage, "20")
    assert path.endswith(os.environ["PATH"])
    assert "#SBATCH --signal=B:USR1@50\n" in job.script.read_text()
    for file in job.folder.iterdir():
        assert not stat.S_IMODE(file.stat().st_mode) & 0o077, file


def test_each_submission_has_another_token(job: StudyJob) -> None:
    tokens = set()
    for _ in range(2):
        submit(job, [], [])
        tokens.add((job.folder / "token").read_text())
    assert len(tokens) == 2


def test_a_job_that_only_ends_is_not_in_the_queue(
    job: StudyJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE", "7 COMPLETING")
    assert queued(job.name) is None
    monkeypatch.setenv("QUEUE", "7 COMPLETING\n8 PENDING")
    assert queued(job.name) == "8"
    monkeypatch.setenv("QUEUE", "")
    with pytest.raises(Unreachable, match="SLURM does not answer: squeue: error: no answer"):
        queued(job.name)


def test_a_machine_without_slurm_is_told_from_a_login_node(
    job: StudyJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="there is no squeue on the PATH"):
        queued(job.name)
