"""A study as jobs of a real SLURM, whose nodes die, whose jobs are warned, and come back."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.patience import wait_until
from support.running.slurm import Slurm, missing_daemon

TASK = """
import json
import time


def train(params, trial):
    start = 0
    if trial.checkpoint is not None:
        start = json.loads((trial.checkpoint / "state.json").read_text())
    for epoch in range(start + 1, int(trial.budget) + 1):
        time.sleep(params["nap_s"])
        with trial.save() as folder:
            (folder / "state.json").write_text(json.dumps(epoch))
        trial.report(epoch, {"loss": params["x"] + 1 / epoch})
"""
STUDY = """
study: naps
task: {kind: "naps:train", args: {nap_s: NAP}}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: TRIALS, per_trial: {epochs: 4}}
search: {sampler: random, pruner: none}
resources: {cpu: 1, gpu: 0, stop_grace: 5s}
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A SLURM of two nodes. Skips where it is not installed, unless HPSEARCH_TESTS_REQUIRE_SLURM=1
    asks for a failure."""
    missing = missing_daemon()
    if missing is not None:
        if os.environ.get("HPSEARCH_TESTS_REQUIRE_SLURM") == "1":
            pytest.fail(f"SLURM is not installed: there is no {missing}")
        pytest.skip(f"SLURM is not installed: there is no {missing}")
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    started = Slurm(folder)
    yield started
    started.stop()
    shutil.rmtree(folder, ignore_errors=True)


class Login:
    """A person on a login node, in a folder with a study."""

    def __init__(self, folder: Path, slurm: Slurm, trials: int, nap_s: float = 1.0) -> None:
        self._folder = folder
        self._slurm = slurm
        self.trials = trials
        wait_until(lambda: not slurm.call("squeue", "-h"))  # the job of the test before has left
        (folder / "naps.py").write_text(TASK)
        (folder / "study.yaml").write_text(
            STUDY.replace("TRIALS", str(trials)).replace("NAP", str(nap_s))
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of hpsearch."""
        return subprocess.run(
            [str(Path(sys.executable).with_name("hpsearch")), *arguments],
            cwd=self._folder,
            env={**os.environ, **self._slurm.environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def submit(self, *options: str) -> str:
        """Submit the study; the id of the job with its driver."""
        done = self.run("submit", "study.yaml", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def log_of(self, job: str) -> str:
        file = self._folder / "naps.slurm" / f"hpsearch-naps-{job}.log"
        return file.read_text() if file.exists() else ""

    def wait_for(self, text: str, job: str) -> None:
        """Wait until the driver says something, or fail if its job ends without."""
        wait_until(lambda: text in self.log_of(job) or not self._slurm.state_of(job))
        assert text in self.log_of(job), self.log_of(job)

    def has_lost_nothing(self) -> None:
        """Check that each trial was trained to its end once, and that the database is in order."""
        trials = json.loads(self.run("trials", "--format", "json").stdout)
        ended = [(trial["number"], trial["state"]) for trial in trials]
        assert ended == [(number, "complete") for number in range(self.trials)]
        checked = self.run("db", "check")
        assert checked.returncode == 0, checked.stdout + checked.stderr


ENDED = "study naps has ended: all"


def test_a_study_runs_on_all_nodes_of_a_job_and_cannot_be_submitted_twice(
    slurm: Slurm, tmp_path: Path
) -> None:
    login = Login(tmp_path, slurm, trials=4, nap_s=0.5)
    refused = login.run("submit", "study.yaml", "--partition", "none")
    assert refused.returncode == 2
    assert "invalid partition specified: none" in refused.stderr
    too_many = login.run("submit", "study.yaml", "--nodes=3")
    assert "--nodes 3 is more than partition all has: 2" in too_many.stderr
    scratch = tmp_path / ("a long name " * 8).strip()
    scratch.mkdir()
    prelude = tmp_path / "prelude.sh"
    prelude.write_text(
        f"#SBATCH --nodes=2\nexport TMPDIR='{scratch}'\necho prelude\nin_container=(env IN=1)\n"
    )
    job = login.submit("--slurm", "--prelude", str(prelude), "--job-name=other")
    second = login.run("submit", "study.yaml", "--job-name=another")
    assert second.returncode == 4
    assert f"study naps is job {job} already" in second.stderr
    login.wait_for(ENDED, job)
    assert login.log_of(job).count("prelude\n") == 2
    login.has_lost_nothing()
    wait_until(lambda: not slurm.state_of(job))
    wait_until(lambda: not list(scratch.iterdir()))
    third = login.run("submit", "study.yaml")
    assert third.returncode == 2
    assert "study naps has already ended" in third.stderr


def test_a_study_that_waits_says_so_and_is_no_study_of_that_name_elsewhere(
    slurm: Slurm, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    login = Login(tmp_path / "a", slurm, trials=4)
    other = Login(tmp_path / "b", slurm, trials=4)
    dry = login.run("submit", "study.yaml", "--dry-run", "--arr", "1-2", "--hold")
    assert "sbatch --parsable --arr 1-2 --hold --job-name=hpsearch-naps-DRIVER" in dry.stdout
    assert not slurm.call("squeue", "-h")
    job = login.submit("--arr", "1-2", "--hold")
    others = other.submit("--hold")
    waits = f"waits in the queue as job {job} (JobHeldUser): it is held"
    assert waits in login.run("status", "naps").stdout
    status = json.loads(login.run("status", "--format", "json").stdout)
    assert (status["state"], status["queue"]["job"]) == ("queued", job)
    assert f"study naps is job {job} already" in login.run("run", "study.yaml").stderr
    for command in (["best", "naps"], ["stop", "naps", "0"], ["status", "--watch"]):
        assert waits in login.run(*command).stderr, command
    assert f"cancelled: job {job} and " in login.run("stop", "naps").stderr
    assert slurm.call("squeue", "-h", "-o", "%i") == others
    assert f"cancelled: job {others}" in other.run("stop", "naps").stderr


@pytest.mark.thorough
def test_a_study_goes_on_where_one_of_its_nodes_dies(slurm: Slurm, tmp_path: Path) -> None:
    login = Login(tmp_path, slurm, trials=10)
    job = login.submit("--nodes=2")
    login.wait_for("trial 2 complete", job)
    slurm.cut_power("n2")
    login.wait_for(ENDED, job)
    slurm.power_on("n2")
    assert "Restarts=0" in slurm.call("scontrol", "show", "job", job)
    login.has_lost_nothing()
    wait_until(lambda: not slurm.state_of(job))


@pytest.mark.thorough
def test_a_study_comes_back_where_the_node_of_its_driver_dies(slurm: Slurm, tmp_path: Path) -> None:
    login = Login(tmp_path, slurm, trials=10)
    job = login.submit("--nodes=2")
    login.wait_for("trial 2 complete", job)
    slurm.cut_power("n1")
    wait_until(lambda: slurm.has_requeued(job))
    assert f"abandoned; waits in the queue as job {job} (" in login.run("status", "naps").stdout
    resumed = login.run("resume", "naps")
    assert (resumed.returncode, f"study naps is job {job} already" in resumed.stderr) == (4, True)
    assert list(Path("/tmp").glob(f"hps-{job}-0-*"))
    slurm.power_on("n1")
    slurm.start_now(job)
    login.wait_for(ENDED, job)
    assert not list(Path("/tmp").glob(f"hps-{job}-0-*"))
    login.has_lost_nothing()


@pytest.mark.thorough
def test_a_job_that_is_warned_of_its_end_saves_and_continues(slurm: Slurm, tmp_path: Path) -> None:
    login = Login(tmp_path, slurm, trials=30)
    job = login.submit("--nodes=2", "--time=20")
    login.wait_for("trial 2 complete", job)
    slurm.call("scontrol", "update", f"jobid={job}", "EndTime=now+75")
    wait_until(lambda: slurm.has_requeued(job))
    assert "interrupted; everything is saved. Continue with: cd " in login.log_of(job)
    assert "the job is requeued, and the study continues when it starts" in login.log_of(job)
    assert "Ctrl-C" not in login.log_of(job)
    assert "hpsearch resume" not in login.log_of(job)
    slurm.call("scontrol", "update", f"jobid={job}", "TimeLimit=20")
    slurm.start_now(job)
    login.wait_for("study naps goes on as it was created", job)
    login.wait_for(ENDED, job)
    login.has_lost_nothing()


@pytest.mark.thorough
def test_the_tasks_of_an_array_are_nodes_that_join_leave_and_come_back(
    slurm: Slurm, tmp_path: Path
) -> None:
    login = Login(tmp_path, slurm, trials=12)
    job = login.submit("--array=1-2", "--driver=--time=10")
    login.wait_for("trial 2 complete", job)
    tasks = slurm.call("squeue", "-h", "-o", "%A", f"--name=hpsearch-naps-{job}", "--array")
    leaves = tasks.split()[0]
    slurm.call("scancel", "--batch", "--signal=USR1", leaves)
    wait_until(lambda: slurm.has_requeued(leaves))
    slurm.start_now(leaves)
    login.wait_for(ENDED, job)
    wait_until(lambda: not slurm.call("squeue", "-h"))
    login.has_lost_nothing()
