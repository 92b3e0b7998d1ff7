"""The actor of a rank above 0: it trains the attempts that rank 0 trains, as rank 0 says."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import ray

from hpsearch.domain import events as ev
from hpsearch.running.executors import worker_process
from hpsearch.running.executors.attempt.control import Control
from hpsearch.running.executors.attempt.execution import Ending, Execution
from hpsearch.running.executors.attempt.printing import logged
from hpsearch.running.executors.attempt.worker_state import WorkerState
from hpsearch.running.executors.worker_config import WorkerConfig
from trials.checkpoints import folders

if TYPE_CHECKING:
    from trials.devices.ranks import Meeting, Place

VISIBLE = "CUDA_VISIBLE_DEVICES"


class Process(NamedTuple):
    """The process of a rank."""

    node: str  # the id of its node
    number: int
    gpu: str  # the GPUs that it was given, as CUDA_VISIBLE_DEVICES has them; empty without any


def this_process() -> Process:
    """The process of this actor."""
    node = ray.get_runtime_context().get_node_id()
    has_gpu = bool(ray.get_gpu_ids())
    return Process(node, os.getpid(), os.environ[VISIBLE] if has_gpu else "")


class FollowerActor:
    """The process of a rank above 0."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._place: Place | None = None
        self._state: WorkerState | None = None
        self._is_to_end = threading.Event()
        worker_process.let_children_die_with_us()
        worker_process.on_notice(self._is_to_end.set)

    @ray.method(concurrency_group="command")
    def hello(self) -> Process:
        """Answer once the process is there."""
        return this_process()

    @ray.method(concurrency_group="command")
    def take(self, place: Place, gpus: str) -> None:
        """Take a place among the ranks. `gpus` are those of all ranks on this node, in their order:
        libraries choose theirs by the local rank."""
        device = "cpu"
        if gpus:
            os.environ[VISIBLE] = gpus
            device = f"cuda:{place.local_rank}"
        self._place = place
        self._state = WorkerState(self._config, lambda box: ray.get(box[0]), device, share=1.0)

    @ray.method(concurrency_group="life")
    def live(self, seconds: float) -> bool:
        """Answer after some seconds, as a sign of life; True at once if told to end (SIGTERM)."""
        return self._is_to_end.wait(seconds)

    @ray.method(concurrency_group="train")
    def train(self, order: ev.Launch, data: Any, meeting: Meeting) -> Ending:
        """Train an attempt until it ends here."""
        from trials.devices.ranks import ConnectedRanks, connect

        assert self._place is not None, "rank 0 has met this one"
        assert self._state is not None
        ranks = ConnectedRanks(self._place, meeting, connect(meeting))
        control = Control(until=math.inf)
        with self._printing(order):
            execution = Execution(
                self._state, order, control, lambda _: None, lambda *_: None, None, ranks
            )
            ending = execution.run(data)
            if not isinstance(ending, ev.Failed):
                ending = execution.settled(ending)
            worker_process.end_those_left(execution.before)
            return ending

    @contextmanager
    def _printing(self, order: ev.Launch) -> Iterator[None]:
        """Print into the log of the attempt, which rank 0 has begun; not into one in a store."""
        target = self._config.log(order.trial, order.attempt)
        if folders.is_url(target):
            yield
            return
        with logged(target, redirects=True):
            yield
