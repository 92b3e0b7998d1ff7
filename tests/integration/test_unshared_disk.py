"""Logs of attempts on a node whose disk is its own: its folder of studies is another one."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running.programs import HPSEARCH, run_program
from support.running.ray_heads import RAY, RayHead

TASK = """
def train(params, trial):
    print("seen on", trial.budget)
    trial.report(1, {"loss": params["x"]})
    if params["x"] > 0.5:
        raise KeyError("too large")
"""
STUDY = """
study: apart
task: {kind: "apart:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 1}}
search: {sampler: random, pruner: none}
resources: {workers: 1, cpu: 1, gpu: 0}
"""


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    folder = tmp_path / "studies"
    folder.mkdir()
    return folder


@pytest.fixture
def apart(studies: Path) -> Iterator[RayHead]:
    """A head that runs no trials, and a node that has an empty disk where the studies are kept."""
    script = f"mount -t tmpfs none '{studies}' && exec \"$@\""
    hides = ["unshare", "--mount", "sh", "-c", script, "sh"]
    tried = subprocess.run([*hides, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("a disk of its own needs the right to mount")
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    head = RayHead(folder / "r", cpus=0)
    head.start([*hides, RAY, "start", f"--address={head.address}", "--num-cpus=1"])
    yield head
    head.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_logs_of_a_node_that_does_not_share_the_folder_come_to_the_driver(tmp_path, studies, apart):
    (tmp_path / "apart.py").write_text(TASK)
    (tmp_path / "study.yaml").write_text(STUDY)

    def hpsearch(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_program([HPSEARCH, *arguments], cwd=tmp_path, env=apart.environment)

    run = hpsearch("run", "study.yaml", "--address", apart.address, "--checkpoints", str(studies))
    assert run.returncode == 0, run.stderr
    for trial in ("0", "1"):
        log = hpsearch("show", "apart", trial, "--log")
        assert log.returncode == 0, log.stderr
        assert "\nseen on 1" in log.stdout
        assert "[hpsearch] attempt 1: " in log.stdout
    assert [each.name for each in studies.glob("*/trial-*")] == []  # the disk was another one
