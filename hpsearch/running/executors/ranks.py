"""Several processes for one trial: rank 0 is the worker of the slot, the others follow it.

A rank that is lost takes its slot along: the worker asks to be replaced, which costs its attempt as
any worker's end does, and the executor starts all ranks again. A rank that fails fails its attempt,
even while rank 0 waits for it in a collective. Nothing can end such a wait but the end of its
process, so all ranks are started again after a failure, too, unless the loss diverged: the loop
finds that on all ranks at once.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError

from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.running.executors import worker_process
from hpsearch.running.executors.attempt.attempt_log import logged
from hpsearch.running.executors.attempt.execution import Control, Ending, Execution
from hpsearch.running.executors.worker import Worker
from hpsearch.running.executors.worker_config import WorkerConfig, WorkerState
from trials.checkpoints import folders
from trials.contract import ProcessEnded
from trials.devices import gpu
from trials.devices.gpu import VISIBLE
from trials.foreign import line_of
from trials.running import surroundings

if TYPE_CHECKING:
    from torch._C._distributed_c10d import TCPStore

    from trials.contract import Ranks
    from trials.devices.ranks import Meeting, Place

END_S = 30.0
"""The seconds in which all ranks end after rank 0 has ended, or after their group broke. Ray needs
about half of them to notice that a node is gone."""
AFTER_FAILURE = "its ranks are started again after a failure"
SIGN_S = 10.0  # the longest between two signs of life

_CONSEQUENCE = re.compile(
    r"DistBackendError|DistNetworkError|DistStoreError|[Gg]loo|NCCL|raised on rank 0"
)
"""Found in a failure that another rank has caused: the connection to it broke, or it was told."""


class Process(NamedTuple):
    """The process of a rank."""

    node: str  # the id of its node
    number: int
    gpu: str  # the GPUs that it was given, as CUDA_VISIBLE_DEVICES has them; empty without any


def fault_here(device: str) -> dict[str, str]:
    """Why torch cannot use a GPU of this process, by the id of the node; empty if it can."""
    found = gpu.fault(device)
    return {} if found is None else {ray.get_runtime_context().get_node_id(): found}


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
        surroundings.settle()
        worker_process.let_children_die_with_us()
        worker_process.on_notice(self._is_to_end.set)

    @ray.method(concurrency_group="command")
    def ready(self) -> Process:
        """Answer once the process is there."""
        return this_process()

    @ray.method(concurrency_group="command")
    def take(self, place: Place, gpus: str) -> dict[str, str]:
        """Take a place among the ranks. `gpus` are those of all ranks on this node, in their order:
        libraries choose theirs by the local rank. Returns its `fault_here`."""
        device = "cpu"
        if gpus:
            os.environ[VISIBLE] = gpus
            device = f"cuda:{place.local_rank}"
        self._place = place
        self._state = WorkerState(
            self._config, lambda box: ray.get(box[0]), device, memory_fraction=1.0
        )
        needs_torch = gpus and self._config.needs_torch(place.size)
        return fault_here(device) if needs_torch else {}

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
                ending = execution.end_run(ending)
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


class Followers:
    """The ranks above 0 of a worker (a `worker.Team`), by their `FollowerActor`s. One without a
    sign of life for `silent_s` seconds counts as lost."""

    def __init__(self, actors: Sequence[Any], silent_s: float) -> None:
        self._actors = list(actors)
        self._silent_s = silent_s
        self._address = ray.util.get_node_ip_address()
        self._place: Place | None = None
        self._store: TCPStore | None = None
        self._ranks: list[int] = []  # of the actors
        self._endings: dict[int, Ending] = {}  # of the attempt that runs, by the rank
        self._news = threading.Condition()
        self._worker: Worker | None = None

    def meet(self, worker: Worker) -> tuple[list[Process], dict[str, str]]:
        """Wait for all ranks, give each its place, and watch them for the worker. Returns the
        processes of all, the worker's first, and the `fault_here` of the others."""
        # Imported here: torch takes its time.
        from trials.devices.ranks import places

        self._worker = worker
        found = [this_process(), *ray.get([actor.ready.remote() for actor in self._actors])]
        self._place, *others = places([process.node for process in found])
        takes = []
        for actor, process, place in zip(self._actors, found[1:], others, strict=True):
            takes.append(actor.take.remote(place, _gpus(found, process.node)))
        if found[0].gpu:
            os.environ[VISIBLE] = _gpus(found, found[0].node)
        faults = {node: what for each in ray.get(takes) for node, what in each.items()}
        self._ranks = [place.rank for place in others]
        for actor, rank in zip(self._actors, self._ranks, strict=True):
            threading.Thread(target=self._watch, args=(actor, rank), daemon=True).start()
        return found, faults

    def _watch(self, actor: Any, rank: int) -> None:
        assert self._worker is not None
        hold_s = min(SIGN_S, self._silent_s / 3)
        while True:
            try:
                if ray.get(actor.live.remote(hold_s), timeout=self._silent_s):
                    self._worker.retire(signalled=True)
                    return
            except GetTimeoutError:
                self._worker.give_up(f"rank {rank}: no sign of life for {self._silent_s:g} s")
                return
            except RayError as error:
                self._worker.give_up(f"rank {rank} was lost: {line_of(error)}")
                return

    def begin(self, order: ev.Launch, data: Any) -> Ranks:
        """Let all ranks train an attempt; returns them as its training sees them."""
        from trials.devices.ranks import ConnectedRanks, Meeting, serve

        assert self._place is not None, "the ranks have met"
        self._store = serve(self._address)
        meeting = Meeting(self._address, self._store.port)
        self._endings = {}
        for actor, rank in zip(self._actors, self._ranks, strict=True):
            call = actor.train.remote(order, data, meeting)
            threading.Thread(target=self._follow, args=(order, rank, call), daemon=True).start()
        return ConnectedRanks(self._place, meeting, self._store)

    def _follow(self, order: ev.Launch, rank: int, call: Any) -> None:
        try:
            ending: Ending = ray.get(call)
        except RayActorError:
            return  # `_watch` has noticed it, too
        except ProcessEnded as end:
            assert self._worker is not None
            self._worker.give_up(f"rank {rank} was lost: {line_of(end)}")
            return
        assert self._worker is not None
        if isinstance(ending, ev.Failed):
            ending = replace(ending, text=f"rank {rank}: {ending.text}")
            if not _is_consequence(ending):
                self._worker.fail(order, ending)
        with self._news:
            self._endings[rank] = ending
            self._news.notify_all()

    def verdict(self, ending: Ending) -> tuple[Ending, str | None]:
        """The ending of the attempt on all ranks, by that of rank 0, and why they have to be
        started again, if they have to. It waits for the others, where they matter."""
        has_failed = isinstance(ending, ev.Failed) and ending.kind is not ErrorKind.DIVERGED
        if isinstance(ending, ev.Failed) and has_failed and not _is_consequence(ending):
            return ending, AFTER_FAILURE
        with self._news:
            have_ended = self._news.wait_for(lambda: len(self._endings) == len(self._actors), END_S)
            others = list(self._endings.values())
        # Where another rank was the cause, its failure or loss was sent from here meanwhile.
        if has_failed or any(isinstance(each, ev.Failed) for each in others):
            return ending, AFTER_FAILURE
        if not have_ended:
            return ending, f"not all ranks have ended within {END_S:g} s after rank 0"
        return ending, None


def _gpus(processes: Sequence[Process], node: str) -> str:
    return ",".join(each.gpu for each in processes if each.node == node and each.gpu)


def _is_consequence(failure: ev.Failed) -> bool:
    # Without the lines of the code that was running, which are indented.
    errors = [line for line in failure.details.splitlines() if not line.startswith(" ")]
    return any(_CONSEQUENCE.search(line) for line in [failure.text, *errors])
