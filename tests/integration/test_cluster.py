"""Slots on a Ray cluster whose nodes come and go."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import ray
from ray._raylet import GcsClient
from ray.cluster_utils import Cluster
from ray.core.generated import autoscaler_pb2

from hpsearch.domain import events as ev
from hpsearch.errors import Unreachable, UserError
from hpsearch.running.executors import slot_needs
from hpsearch.running.executors.attempt.execution import RETIRED
from hpsearch.running.executors.cluster import ray_cluster
from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.running.executors.ray import RayExecutor
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from support.patience import PATIENCE_S, wait_until
from support.running.executor_events import of, wait_for
from support.running.programs import run_program
from trials.contract import Budget, Unit

TASK = """
import itertools, os, time


def train(params, trial):
    if "BAD_NODE" in os.environ:
        raise OSError("this node has no data")
    for i in itertools.count(1):
        time.sleep(0.05)
        trial.report(i / 1e6, {})
"""


@pytest.fixture(scope="module")
def head() -> Iterator[Cluster]:
    """A cluster whose only node is a head that runs no trials."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield made
    made.shutdown()


@pytest.fixture
def alone(head: Cluster) -> Iterator[Cluster]:
    """The head, without nodes of tests before."""
    yield head
    for node in list(head.worker_nodes):
        head.remove_node(node)


@pytest.fixture
def nodes(alone: Cluster) -> Cluster:
    """A cluster of which one node with one CPU runs trials."""
    alone.add_node(num_cpus=1)
    return alone


@pytest.fixture
def config(tmp_path: Path) -> WorkerConfig:
    (tmp_path / "endless.py").write_text(TASK)
    budget = Budget(Unit.EPOCHS, 4.0, (1.0, 4.0))
    return WorkerConfig(
        {"kind": "endless:train"},
        str(tmp_path),
        {},
        budget,
        str(tmp_path / "saved"),
        prepares=False,
    )


@pytest.fixture
def executor(
    nodes: Cluster, config: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RayExecutor]:
    """An executor with a worker on the one node, which often looks at the cluster's nodes."""
    monkeypatch.setattr(ray_cluster, "ASK_S", 0.2)
    resources = Resources(workers="auto", gpu=0.0)
    with cluster(nodes.address, resources):
        made = RayExecutor(config, resources)
        assert not of(ev.SlotUp, 2)(wait_for(made, of(ev.SlotUp)))
        yield made
        made.close()


def busy_node(nodes: Cluster, executor: RayExecutor, cpus: int) -> tuple[Any, list[str]]:
    """A second node with a worker on each CPU, the first of them with an attempt; and the names of
    their slots."""
    executor.launch(ev.Launch(9, 1, "w0", {}, 1, 4.0))  # else it needs no more workers
    node = nodes.add_node(num_cpus=cpus)
    came = wait_for(executor, of(ev.SlotUp, cpus))
    slots = [event.slot for event in came if isinstance(event, ev.SlotUp)]
    assert len(slots) == cpus
    executor.launch(ev.Launch(0, 1, slots[0], {}, 1, 4.0))
    return node, slots


def test_workers_follow_the_nodes_as_they_come_and_go(nodes, executor):
    node, slots = busy_node(nodes, executor, cpus=2)
    nodes.remove_node(node)
    gone = wait_for(executor, of(ev.SlotDown, 2))
    assert {event.slot for event in gone if isinstance(event, ev.SlotDown)} == set(slots)


@pytest.mark.thorough
def test_workers_on_a_node_that_is_about_to_go_save_and_move(nodes, executor):
    node, (slot,) = busy_node(nodes, executor, cpus=1)
    preempted = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    in_a_minute = int((time.time() + 60) * 1000)
    accepted, why = GcsClient(address=nodes.address).drain_node(
        node.node_id, preempted, "spot", in_a_minute
    )
    assert accepted, why
    events = wait_for(executor, of(ev.SlotDown))
    assert [(e.trial, e.attempt) for e in events if isinstance(e, ev.Stopped)] == [(0, 1)]
    assert [e for e in events if isinstance(e, ev.SlotDown)] == [ev.SlotDown(slot, RETIRED)]


@pytest.mark.thorough
def test_a_worker_too_large_for_every_node_is_a_mistake_that_is_told(nodes, config):
    resources = Resources(workers="auto", cpu=64.0, gpu=0.0)
    with (
        cluster(nodes.address, resources),
        pytest.raises(UserError, match="no node of the cluster has the 64 CPU and 0 GPU"),
    ):
        RayExecutor(config, resources)


def test_a_study_without_room_waits_for_it_and_says_so(executor, config, caplog):
    other = RayExecutor(config, Resources(workers="auto", gpu=0.0))
    try:
        with caplog.at_level(logging.WARNING, "hpsearch"):
            waits = "for the cluster to have 1 CPU and 0 GPU free for a worker"
            events = wait_for(other, lambda events: waits in caplog.text)
            assert not events, "the first study has the only CPU"
            executor.close()
            assert of(ev.SlotUp)(wait_for(other, of(ev.SlotUp)))
    finally:
        other.close()


def test_a_study_that_has_no_worker_yet_is_served_before_one_that_has(
    nodes, executor, config, monkeypatch
):
    monkeypatch.setattr("hpsearch.running.executors.ray.STEADY_S", PATIENCE_S)
    other = RayExecutor(config, Resources(workers="auto", gpu=0.0))
    try:
        nodes.add_node(num_cpus=1)
        of_first: list[ev.Event] = []

        def is_up(events: list[ev.Event]) -> bool:
            of_first.extend(executor.poll(0.1))
            return of(ev.SlotUp)(events)

        assert of(ev.SlotUp)(wait_for(other, is_up))
        assert not of_first
    finally:
        other.close()


def test_a_study_waits_for_the_first_node_where_the_head_runs_no_trials(alone, config, caplog):
    resources = Resources(workers="auto", gpu=0.0)
    with caplog.at_level(logging.WARNING, "hpsearch"), cluster(alone.address, resources):
        with ThreadPoolExecutor() as pool:
            made = pool.submit(RayExecutor, config, resources)
            wait_until(lambda: "waiting for the first node" in caplog.text)
            alone.add_node(num_cpus=1)
            executor = made.result()
        assert of(ev.SlotUp)(wait_for(executor, of(ev.SlotUp)))
        executor.close()


def test_an_address_where_nothing_listens_is_refused_at_once():
    with pytest.raises(Unreachable, match=r"no cluster answers at 127\.0\.0\.1:1"):
        cluster("127.0.0.1:1", Resources()).__enter__()


@pytest.mark.thorough
def test_workers_keep_away_from_a_node_that_is_set_aside_and_come_back(nodes, executor):
    executor.launch(ev.Launch(9, 1, "w0", {}, 1, 4.0))
    bad = nodes.add_node(num_cpus=1, env_vars={"BAD_NODE": "1"})
    (up,) = [e for e in wait_for(executor, of(ev.SlotUp)) if isinstance(e, ev.SlotUp)]
    assert up.node_id == bad.node_id
    executor.launch(ev.Launch(0, 1, up.slot, {}, 1, 4.0))
    failed = wait_for(executor, of(ev.SlotUp))  # a new worker, after the fault
    assert "this node has no data" in next(e.text for e in failed if isinstance(e, ev.Failed))
    executor.avoid(ev.Avoid(bad.node_id, "bad", 25.0))
    wait_for(executor, of(ev.SlotDown))
    good = nodes.add_node(num_cpus=1)
    came = [e for e in wait_for(executor, of(ev.SlotUp)) if isinstance(e, ev.SlotUp)]
    assert came[0].node_id == good.node_id, "it has room as well, and is not set aside"
    executor.launch(ev.Launch(1, 1, came[0].slot, {}, 1, 4.0))
    back = [e for e in wait_for(executor, of(ev.SlotUp)) if isinstance(e, ev.SlotUp)]
    assert [event.node_id for event in back] == [bad.node_id], "its time is over"


@pytest.mark.thorough
def test_a_head_that_has_just_died_is_asked_for_no_longer_than_the_driver_can_wait(config):
    """Ray itself would wait for a minute, and raise an error. In a process of its own, as Ray does
    not leave such a cluster."""
    command = [sys.executable, "-c", ORPHANED, config.base]
    done = run_program(command)
    assert done.stdout == "1 room is not given back yet\n", done.stderr


ORPHANED = """
import os
import sys
from ray.cluster_utils import Cluster
from hpsearch.domain import events as ev
from hpsearch.running.executors.cluster import ray_cluster
from hpsearch.running.executors.ray import RayExecutor
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from trials.contract import Budget, Unit

ray_cluster.SILENT_S = 2.0
base = sys.argv[1]
budget = Budget(Unit.EPOCHS, 4.0, (1.0, 4.0))
config = WorkerConfig({"kind": "endless:train"}, base, {}, budget, base + "/s", prepares=False)
nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
resources = Resources(workers=1, gpu=0.0)
with ray_cluster.cluster(nodes.address, resources):
    executor = RayExecutor(config, resources)
    while not any(isinstance(event, ev.SlotUp) for event in executor.poll(0.2)):
        pass
    nodes.head_node.kill_gcs_server()
    executor._start_worker()
    executor._withdraw(*executor._slots)
    executor._rooms.give_back()
    print(len(executor._rooms._left), "room is not given back yet", flush=True)
    nodes.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
    os._exit(0)
"""


def test_an_autoscaler_is_asked_for_the_first_gpu_rather_than_training_on_a_cpu(
    nodes, config, monkeypatch, caplog
):
    """The test starts the node, as an autoscaler would that sees the demand for a GPU."""
    monkeypatch.setattr(slot_needs, "has_autoscaler", lambda: True)
    resources = Resources(workers="auto", gpu="auto")
    with caplog.at_level(logging.WARNING, "hpsearch"), cluster(nodes.address, resources):
        monkeypatch.setattr(slot_needs, "BRING_S", 0.5)
        with pytest.raises(UserError, match="its autoscaler brought none"):
            RayExecutor(config, resources)
        monkeypatch.undo()
        monkeypatch.setattr(slot_needs, "has_autoscaler", lambda: True)
        caplog.clear()
        with ThreadPoolExecutor() as pool:
            made = pool.submit(RayExecutor, config, resources)
            wait_until(lambda: "asking the autoscaler for one" in caplog.text)
            demands = ray.util.placement_group_table().values()
            assert any({"CPU": 1.0, "GPU": 1.0} in each["bundles"].values() for each in demands)
            nodes.add_node(num_cpus=1, num_gpus=1)
            executor = made.result()
        assert executor.gpus == 1.0
        executor.close()


def test_a_study_waits_no_longer_once_an_autoscaler_is_heard_of(alone, config, monkeypatch, caplog):
    """A driver that starts with its head asks before the autoscaler has said anything."""
    heard = threading.Event()
    monkeypatch.setattr(slot_needs, "has_autoscaler", heard.is_set)
    resources = Resources(workers="auto", gpu=0.0)
    with caplog.at_level(logging.WARNING, "hpsearch"), cluster(alone.address, resources):
        with ThreadPoolExecutor() as pool:
            made = pool.submit(RayExecutor, config, resources)
            wait_until(lambda: "waiting for the first node" in caplog.text)
            heard.set()
            executor = made.result()
        assert executor._slots, "a worker's room is the demand"
        executor.close()


def test_slots_share_a_gpu_as_many_as_the_driver_says(nodes: Cluster, config: WorkerConfig) -> None:
    """On a logical GPU: torch finds none here, and the task needs none."""
    nodes.add_node(num_cpus=2, num_gpus=1)
    resources = Resources(workers="auto", cpu=0.5, gpu="share")
    with cluster(nodes.address, resources):
        executor = RayExecutor(config, resources)
        (up,) = [e for e in wait_for(executor, of(ev.SlotUp)) if isinstance(e, ev.SlotUp)]
        assert (up.gpus, up.most) == (1.0, 4), "each takes half a core of two"
        executor.launch(ev.Launch(0, 1, up.slot, {}, 1, 4.0, memory_fraction=1.0))
        executor.fill(ev.Fill(up.device, 2))
        (second,) = [e for e in wait_for(executor, of(ev.SlotUp)) if isinstance(e, ev.SlotUp)]
        assert second.gpu_id == up.gpu_id
        executor.launch(ev.Launch(1, 1, second.slot, {}, 1, 4.0, memory_fraction=1 / 2))
        executor.fill(ev.Fill(up.device, 1))
        gone = wait_for(executor, of(ev.SlotDown))
        (stopped,) = [event for event in gone if isinstance(event, ev.Stopped)]
        assert stopped.why == RETIRED, "it goes on elsewhere, and costs no attempt"
        executor.close()
