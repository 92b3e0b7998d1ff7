"""One slot on a Ray cluster: an actor that holds a `Worker`, its executor's record of it, and the
placement groups of slots.

An actor answers one long `poll` at a time, so that a message costs one call however many events it
carries. A poll takes along the driver's orders since the one before, and the reports that are in
the database. Commands that come while a poll is out are sent at once, in a call of their own. A
placement group waits in Ray's queue until it has a place. The head reserves them and takes them
back, so neither happens while it is silent.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import ray
from ray.util.placement_group import PlacementGroup

from hpsearch.domain import events as ev
from hpsearch.running.executors import worker_process
from hpsearch.running.executors.cluster.ray_cluster import HeadNode, ask_head
from hpsearch.running.executors.ranks import Followers, Process, fault_here, this_process
from hpsearch.running.executors.worker import Answer, Worker
from hpsearch.running.executors.worker_config import WorkerConfig
from trials.devices import gpu
from trials.running import surroundings

AttemptKey = tuple[int, int]  # (trial, attempt)

DataRef = list[Any]
"""Holds a reference to prepared data: in a box, a call that takes it need not wait for it."""

OrderWithData = tuple[ev.Command, DataRef | None]
"""A command, with its prepared data if it is a launch."""

Mail = tuple[dict[AttemptKey, float], list[OrderWithData]]
"""The load of a poll: up to which resource attempts' reports are in the database, and
commands. It is one value, because Ray serialises each argument by itself."""


NODE_LABEL = "ray.io/node-id"  # a label that Ray gives each node


class WorkerReady(NamedTuple):
    """The answer of an actor whose worker is ready."""

    address: str
    device: str
    processes: list[Process]  # of all ranks, the worker's first
    faults: dict[str, str]  # why torch cannot use a GPU, by the id of its node


class WorkerActor:
    """A worker inside a Ray actor, which takes polls and commands in a thread each. `followers` are
    the actors of a trial's other processes, lost if silent for `silent_s` seconds."""

    def __init__(
        self, config: WorkerConfig, gpus: float, followers: Sequence[Any], silent_s: float
    ) -> None:
        has_gpu = gpus > 0
        self._device = "cuda:0" if has_gpu else "cpu"
        self._needs_torch = has_gpu and config.needs_torch(1 + len(followers))
        memory_fraction = gpus if has_gpu else 1.0
        surroundings.settle()
        worker_process.let_children_die_with_us()
        self._followers = Followers(followers, silent_s) if followers else None
        self._worker = Worker(
            config,
            lambda box: ray.get(box[0]),
            self._device,
            memory_fraction,
            prints_into_logs=True,
            team=self._followers,
        )
        worker_process.on_notice(partial(self._worker.retire, signalled=True))

    @ray.method(concurrency_group="command")
    def ready(self) -> WorkerReady:
        """Answer once the worker is ready, and those that follow it."""
        processes = [this_process()]
        faults: dict[str, str] = {}
        if self._followers is not None:
            processes, faults = self._followers.meet(self._worker)
        if self._needs_torch:
            faults |= fault_here(self._device)
        device = self._device if self._device == "cpu" else gpu.name()
        return WorkerReady(ray.util.get_node_ip_address(), device, processes, faults)

    @ray.method(concurrency_group="poll")
    def poll(self, timeout_s: float, mail: Mail) -> list[Answer]:
        """Take in the mail, and answer with the worker's next events."""
        recorded, orders = mail
        for (trial, attempt), resource in recorded.items():
            self._worker.recorded(trial, attempt, resource)
        self.carry_out(orders)
        return self._worker.poll(timeout_s)

    @ray.method(concurrency_group="command")
    def retire(self) -> None:
        self._worker.retire()

    @ray.method(concurrency_group="command")
    def carry_out(self, orders: list[OrderWithData]) -> None:
        worker = self._worker
        for order, data in orders:
            match order:
                case ev.Launch():
                    worker.launch(order, data)
                case ev.Advance():
                    worker.advance(order)
                case ev.Stop():
                    worker.stop(order)


@dataclass
class RaySlot:
    """An actor as its executor knows it, with the actors that follow it."""

    actor: Any
    followers: list[Any]
    group: PlacementGroup  # what it takes, reserved in Ray
    pending: Any
    """The call that is out: first `ready`, then one poll after another; None between two."""
    called_at: float  # when that call was sent, by the monotonic clock
    placed: bool = False  # true if its group has a place on a node
    ready: bool = False
    given_back: bool = False  # true if its room goes to another study once it has saved
    free_since: float = 0.0  # since when it has no attempt, by the monotonic clock
    processes: list[Process] = field(default_factory=list)
    device: str = ""  # the type of its device, once it is ready
    attempts: dict[AttemptKey, float | None] = field(default_factory=dict)
    """The attempts it was given. For an attempt that was told to stop: when it must have stopped,
    by the monotonic clock."""
    orders: list[OrderWithData] = field(default_factory=list)  # go out with the next poll
    recorded: dict[AttemptKey, float] = field(default_factory=dict)
    """The resource up to which each attempt's reports are stored; sent with the next poll."""

    def order(self, command: ev.Command, data: DataRef | None = None) -> None:
        """Send a command: with the next poll, or at once where a poll is out."""
        if self.pending is None:
            self.orders.append((command, data))
        else:
            self.actor.carry_out.remote([(command, data)])

    def note_recorded(self, attempt: AttemptKey, resource: float) -> None:
        """Say with the next poll that an attempt's reports up to `resource` are in the database."""
        before = self.recorded.get(attempt, 0.0)
        self.recorded[attempt] = max(before, resource)

    def listen(self, hold_s: float) -> None:
        """Send a poll, unless one is out. The worker answers within `hold_s`."""
        if self.pending is not None:
            return
        self.pending = self.actor.poll.remote(hold_s, (self.recorded, self.orders))
        self.recorded = {}
        self.orders = []
        self.called_at = time.monotonic()

    @property
    def nodes(self) -> set[str]:
        """The ids of its nodes; empty before it is ready."""
        return {process.node for process in self.processes}

    @property
    def gpu_id(self) -> str:
        """The id of its placement group: that of its GPU, where slots share GPUs."""
        return str(self.group.id.hex())

    def give_back(self) -> None:
        """Let it save what it trains, and end, without another in its place."""
        self.given_back = True
        self.actor.retire.remote()

    def kill(self) -> None:
        """End all its actors. Those that have ended are not affected."""
        for actor in (self.actor, *self.followers):
            ray.kill(actor)

    def is_idle(self, now: float, seconds: float = 0.0) -> bool:
        """True if it could have worked for so many seconds, and had nothing to do."""
        return self.ready and not self.attempts and now - self.free_since > seconds

    def skip_silence(self, seconds: float) -> None:
        """Count no silence of so many seconds in which nobody listened."""
        self.called_at += seconds
        for attempt, stop_by in self.attempts.items():
            if stop_by is not None:
                self.attempts[attempt] = stop_by + seconds

    def is_late(self, now: float) -> bool:
        """True if an attempt should have stopped by now."""
        return any(stop_by is not None and now > stop_by for stop_by in self.attempts.values())


@dataclass
class PlacementGroups:
    """Reserves groups, and gives back those that slots have left."""

    head: HeadNode
    takes: dict[str, float]  # what a process of a slot takes, by resource
    processes: int  # those of a slot
    left: list[PlacementGroup] = field(default_factory=list)
    """The groups that are not used any more."""

    def reserve(self) -> PlacementGroup | None:
        """A new group, on nodes that are not set aside; None while the head is silent."""
        return ask_head(self._new, self.leave) if self.head.answers else None

    def _new(self) -> PlacementGroup:
        bundles = [self.takes] * self.processes
        return ray.util.placement_group(bundles, bundle_label_selector=self._elsewhere())

    def _elsewhere(self) -> list[dict[str, str]] | None:
        """For each process of a slot: not on a node that is set aside."""
        aside = ", ".join(sorted(self.head.aside))
        return [{NODE_LABEL: f"!in({aside})"}] * self.processes if aside else None

    def leave(self, group: PlacementGroup) -> None:
        self.left.append(group)

    def give_back(self) -> None:
        """Give back the groups that were left. Ray does so itself at the driver's end."""
        while self.left and self.head.answers:
            if ask_head(partial(_removed, self.left[0])) is None:
                return
            del self.left[0]


def _removed(group: PlacementGroup) -> PlacementGroup:
    ray.util.remove_placement_group(group)
    return group
