"""Studies on nodes that state GPUs where this machine has none, so that torch finds none either."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ray.cluster_utils import Cluster

from hpsearch.domain import events as ev
from hpsearch.errors import Unreachable
from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.running.executors.ray import RayExecutor
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from support.running.executor_events import of, wait_for
from trials.contract import Budget, Unit

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")

CODE = """
import os

import torch


def train(params, trial):
    if os.environ["NODE"] in params["wants_torch_on"]:
        torch.ones(1, device=trial.device)
    trial.report(1, {"loss": ord(os.environ["NODE"])})
"""
SHOW = """
import json, os

print(json.dumps({"resource": 1, "seen": len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))}))
"""

Make = Callable[..., RayExecutor]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    head = {"num_cpus": 2, "num_gpus": 2, "include_dashboard": False, "env_vars": {"NODE": "a"}}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=2, num_gpus=2, env_vars={"NODE": "b"})
        with cluster(made.address, Resources()):
            yield made
    finally:
        made.shutdown()


@pytest.fixture
def make(nodes: Cluster, tmp_path: Path) -> Iterator[Make]:
    made: list[RayExecutor] = []

    def make_for(task: dict[str, Any], *, prepares: bool = False, **more: Any) -> RayExecutor:
        (tmp_path / "torch_on_nodes.py").write_text(CODE)
        budget = Budget(Unit.EPOCHS, 1.0, (1.0,))
        saved = str(tmp_path / "saved")
        config = WorkerConfig(task, str(tmp_path), {}, budget, saved, prepares=prepares)
        made.append(RayExecutor(config, Resources(**more)))
        return made[-1]

    yield make_for
    for executor in made:
        executor.close()


def first_up(executor: RayExecutor) -> ev.SlotUp:
    events = wait_for(executor, of(ev.SlotUp))
    return next(each for each in events if isinstance(each, ev.SlotUp))


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_nothing_starts_where_no_gpu_can_be_trained_on(
    make: Make, tmp_path: Path, processes: int
) -> None:
    (tmp_path / "rows.csv").write_text("x,y\n1,a\n2,b\n")
    task = {"kind": "tabular", "train": "rows.csv", "validation": 0.5, "target": "y"}
    executor = make(task, prepares=True, workers=1, gpu=1.0, processes=processes)
    named = rf"node .*: torch {torch.__version__.replace('+', '.')} is built without CUDA"
    with pytest.raises(Unreachable, match=named) as refused:
        wait_for(executor, of(ev.SlotUp))
    assert "RAY_AUTH_MODE" not in str(refused.value)


@pytest.mark.thorough
def test_code_that_needs_the_gpu_goes_on_where_it_can(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    executor = make({"kind": "torch_on_nodes:train"}, workers=1, gpu=1.0)
    up = first_up(executor)
    executor.launch(ev.Launch(0, 1, up.slot, {"wants_torch_on": ""}, 7, 1.0))
    events = wait_for(executor, of(ev.Finished))
    (report,) = [each for each in events if isinstance(each, ev.Reported)]
    here = chr(int(report.metrics["loss"]))
    executor.launch(ev.Launch(1, 1, up.slot, {"wants_torch_on": here}, 7, 1.0))
    events = wait_for(executor, of(ev.SlotUp))
    assert of(ev.SlotDown)(events)
    assert not of(ev.Failed)(events), "no trial fails for its node"
    other = next(each for each in events if isinstance(each, ev.SlotUp))
    assert other.node_id != up.node_id
    assert caplog.text.count("is not used: torch") == 1
    executor.launch(ev.Launch(1, 2, other.slot, {"wants_torch_on": "ab"}, 7, 1.0))
    with pytest.raises(Unreachable, match="no node has a GPU that can be used"):
        wait_for(executor, of(ev.SlotUp))


@pytest.mark.thorough
@pytest.mark.parametrize(("gpu", "visible"), [(1.0, 1), (0.5, 1), (2.0, 2)])
def test_a_command_sees_the_gpus_of_its_slot(
    make: Make, tmp_path: Path, gpu: float, visible: int
) -> None:
    (tmp_path / "show.py").write_text(SHOW)
    executor = make({"kind": "command", "run": f"{sys.executable} show.py"}, workers=1, gpu=gpu)
    slot = first_up(executor).slot
    executor.launch(ev.Launch(0, 1, slot, {}, 7, 1.0))
    events = wait_for(executor, of(ev.Finished))
    (report,) = [each for each in events if isinstance(each, ev.Reported)]
    assert report.metrics == {"seen": visible}
