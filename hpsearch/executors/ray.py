"""Slots on a Ray cluster: one long-lived actor a slot.

Each actor holds a `Worker` and answers one long `poll` at a time, so that a message costs one call however many events
it carries. A poll is sent once the driver is done with what the one before brought: it takes along what the driver
ordered, and tells the worker that those events are on record. Prepared data are made once by a Ray task and shared
through the object store: one copy a node, mapped and not copied into its workers. Actors are not detached: a driver
that dies takes its workers with it.

A poll comes back after a while even if nothing has happened: that is a worker's sign of life.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from hpsearch import events as ev
from hpsearch.errors import ClusterUnreachable, UserError
from hpsearch.executors import worker_process
from hpsearch.executors.ray_cluster import Head, Node
from hpsearch.executors.worker import Unfit, Worker, WorkerConfig
from hpsearch.spec import Resources

FOLLOW_S = 1.0
"""How often the cluster is looked at for nodes that came or went."""

STOP_GRACE_S = 30.0
"""How long a worker may take to obey a stop before it is killed and replaced."""

STARTS = 5
"""How many times the `worker_timeout` a worker may take until it is ready."""

MOST_FALSE_STARTS = 3
"""Workers in a row that die before they are ready, after which the cluster counts as unusable."""

POLL_S = 30.0
"""The longest a worker holds a poll open."""

log = logging.getLogger("hpsearch")


_Order = tuple[ev.Command, Any]
"""A command, with its prepared data if it is a launch."""


class _Actor:
    """The shell of a worker inside a Ray actor: polls and commands on a thread each."""

    def __init__(self, config: WorkerConfig, gpus: float) -> None:
        self._device = "cuda:0" if gpus > 0 else "cpu"
        worker_process.let_children_die_with_us()
        self._worker = Worker(config, fetch=lambda box: ray.get(box[0]), device=self._device)
        worker_process.on_notice(self._worker.retire)

    @ray.method(concurrency_group="command")
    def hello(self) -> tuple[str, str, int, str]:
        """Node address, device name, process id and the node's id: the worker is ready."""
        device = self._device
        if device != "cpu":
            import torch

            device = torch.cuda.get_device_name(0)
        return ray.util.get_node_ip_address(), device, os.getpid(), ray.get_runtime_context().get_node_id()

    @ray.method(concurrency_group="poll")
    def poll(self, timeout_s: float, orders: list[_Order]) -> list[ev.Event | Unfit]:
        self.carry_out(orders)
        return self._worker.poll(timeout_s)

    @ray.method(concurrency_group="command")
    def retire(self) -> None:
        self._worker.retire()

    @ray.method(concurrency_group="command")
    def carry_out(self, orders: list[_Order]) -> None:
        for order, data in orders:
            match order:
                case ev.Launch():
                    self._worker.launch(order, data)
                case ev.Advance():
                    self._worker.advance(order)
                case ev.Stop():
                    self._worker.stop(order)


def _prepare(config: WorkerConfig, params: Mapping[str, Any]) -> Any:
    return config.load_task().prepare(params)


@dataclass
class _Slot:
    """An actor as the executor knows it."""

    actor: Any
    pending: Any
    """The call that is out: hello first, then one poll after another; None between two of them."""
    asked: float
    """When that call was sent, by the monotonic clock."""
    ready: bool = False
    process: int = 0
    node: str = ""
    on: dict[tuple[int, int], float | None] = field(default_factory=dict)
    """Attempts it was given, with the time by which one that was told to stop must have obeyed."""
    outbox: list[_Order] = field(default_factory=list)
    """Orders that go out with the next poll."""

    def order(self, command: ev.Command, data: Any = None) -> None:
        """Send a command: with the next poll, or at once where one is out."""
        if self.pending is None:
            self.outbox.append((command, data))
        else:
            self.actor.carry_out.remote([(command, data)])

    def listen(self, hold_s: float) -> None:
        """See that a poll is out, which comes back after `hold_s` at the latest."""
        if self.pending is None:
            self.pending, self.outbox = self.actor.poll.remote(hold_s, self.outbox), []
            self.asked = time.monotonic()


class RayExecutor:
    """Runs attempts on the actors of the Ray cluster that this process is part of; see `cluster`.

    Args:
        config: What every worker needs to know.
        resources: What a slot takes, and how many there are to be.
    """

    def __init__(self, config: WorkerConfig, resources: Resources) -> None:
        self._config = config
        self._resources = resources
        self._head = Head(resources.worker_timeout_s)
        self.gpus = self._gpus_a_slot()
        self._slots: dict[str, _Slot] = {}
        self._made = 0
        self._false_starts = 0
        self._followed = 0.0
        self._looked = time.monotonic()
        self._hold_s = min(POLL_S, resources.worker_timeout_s / 3)
        self._task = config.load_task() if config.prepares else None
        self._data: dict[str, Any] = {}
        self._attempts: dict[tuple[int, int], str] = {}
        self._actor_class = ray.remote(concurrency_groups={"poll": 1, "command": 1})(_Actor).options(
            num_cpus=resources.cpu, num_gpus=self.gpus, max_restarts=0
        )
        self._prepare = ray.remote(_prepare).options(num_cpus=0)
        self._kill = ray.remote(num_cpus=0, max_retries=0)(worker_process.kill)
        if self._wanted() == 0:
            raise UserError(
                f"no node of the cluster has the {resources.cpu:g} CPU and {self.gpus:g} GPU that a worker takes",
                "lower resources.cpu or resources.gpu in the study file",
            )
        self._follow_cluster()

    # -------------------------------------------------------------------------------------------------- commands

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt on its slot."""
        slot = self._slots.get(order.slot)
        if slot is None:  # gone meanwhile: SlotDown has been told, and the brain drops what it ordered
            return
        key = (order.trial, order.attempt)
        slot.on[key] = None
        self._attempts[key] = order.slot
        slot.order(order, self._data_for(order))

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt train on."""
        slot = self._slot_of(order.trial, order.attempt)
        if slot is not None:
            slot.order(order)

    def stop(self, order: ev.Stop) -> None:
        """End an attempt; a worker that does not obey in time is killed and replaced."""
        slot = self._slot_of(order.trial, order.attempt)
        if slot is not None:
            grace_s = 2 * self._resources.stop_grace_s if order.save else STOP_GRACE_S
            slot.on[(order.trial, order.attempt)] = time.monotonic() + grace_s
            slot.order(order)

    def _slot_of(self, trial: int, attempt: int) -> _Slot | None:
        return self._slots.get(self._attempts.get((trial, attempt), ""))

    def _data_for(self, order: ev.Launch) -> Any:
        """A box with the reference to the prepared data (boxed, so that the call does not wait for it)."""
        if self._task is None:
            return None
        params = self._config.params(order)
        key = self._task.data_key(params)
        if key not in self._data:
            self._data[key] = [self._prepare.remote(self._config, params)]
        return self._data[key]

    # ---------------------------------------------------------------------------------------------------- events

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """Events of all workers, and of slots that come and go."""
        self._head.check()
        events: list[ev.Event] = []
        for slot in self._slots.values():
            slot.listen(self._hold_s)
        if time.monotonic() - self._followed > FOLLOW_S:
            events += self._kill_the_disobedient()
            self._follow_cluster()
        pending = {slot.pending: name for name, slot in self._slots.items()}
        if not pending:
            time.sleep(min(timeout_s, 0.2))
            return events
        ready, rest = ray.wait(list(pending), num_returns=1, timeout=0 if events else timeout_s)
        if ready and rest:
            ready += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        for call in ready:
            events += self._answer(pending[call], call)
        return events + self._kill_the_silent()

    def _answer(self, name: str, call: Any) -> list[ev.Event]:
        slot = self._slots[name]
        try:
            answer = ray.get(call)
        except RayActorError as error:
            return self._gone(name, _died(error))
        except RayError as error:
            return self._gone(name, str(error).strip().splitlines()[-1])
        slot.pending = None
        if not slot.ready:
            slot.ready, self._false_starts = True, 0
            node, device, slot.process, slot.node = answer
            log.info("worker %s is ready on %s (%s, process %d)", name, node, device, slot.process)
            return [ev.SlotUp(name, node, device, self.gpus)]
        return self._sorted_out(name, slot, answer)

    def _sorted_out(self, name: str, slot: _Slot, events: list[ev.Event | Unfit]) -> list[ev.Event]:
        """Forget attempts that ended, and replace a worker after a fault."""
        faulty: str | None = None
        for event in events:
            if isinstance(event, ev.Finished | ev.Stopped | ev.Failed):
                slot.on.pop((event.trial, event.attempt), None)
                self._attempts.pop((event.trial, event.attempt), None)
            if isinstance(event, ev.Failed) and event.kind in ("error", "out_of_memory"):
                faulty = f"replaced after a fault of trial {event.trial}"
            if isinstance(event, Unfit):
                faulty = event.why
        told: list[ev.Event] = [event for event in events if not isinstance(event, Unfit)]
        return told if faulty is None else [*told, *self._replace(name, faulty)]

    def _gone(self, name: str, why: str) -> list[ev.Event]:
        slot = self._slots.pop(name)
        for key in slot.on:
            self._attempts.pop(key, None)
        self._followed = 0.0  # look for a replacement at once
        if slot.ready:
            # A node that was told to end takes its attempts along, which could not be saved: no failure of theirs.
            told = bool(slot.on) and self._head.was_told_to_end(slot.node)
            return [
                *(ev.Stopped(*key, why="its node was told to end") for key in slot.on if told),
                ev.SlotDown(name, why),
            ]
        self._false_starts += 1
        log.warning("worker %s did not start: %s", name, why)
        if self._false_starts >= MOST_FALSE_STARTS:
            what = f"{self._false_starts} workers in a row did not start; the last one: {why}"
            hint = "see that every node has the driver's packages, and the cluster the driver's RAY_AUTH_MODE"
            raise ClusterUnreachable(what, f"{hint} (docs/cluster.md)")
        return []

    def _replace(self, name: str, why: str) -> list[ev.Event]:
        ray.kill(self._slots[name].actor)
        return self._gone(name, why)

    def _replace_by_force(self, name: str, why: str) -> list[ev.Event]:
        """Replace a worker that does not answer: Ray asks a process to end, and one that is stopped does not."""
        there = NodeAffinitySchedulingStrategy(self._slots[name].node, soft=False)
        self._kill.options(scheduling_strategy=there).remote(self._slots[name].process)
        return self._replace(name, why)

    def _kill_the_silent(self) -> list[ev.Event]:
        """Replace workers whose poll is overdue: stopped, swapped out, or on a node that has vanished."""
        now, events, limit = time.monotonic(), list[ev.Event](), self._resources.worker_timeout_s
        away, self._looked = now - self._looked > limit / 2, now
        for name, slot in list(self._slots.items()):
            if away:  # we were stopped or waited for the database: nobody was listening
                slot.asked = now
            elif slot.ready and slot.pending is not None and now - slot.asked > limit:
                events += self._replace_by_force(name, f"no sign of life for {limit:g} s (worker_timeout)")
            elif not slot.ready and now - slot.asked > STARTS * limit:
                log.warning("worker %s is not ready yet: it hangs, or the cluster has no room; trying another", name)
                ray.kill(self._slots.pop(name).actor)  # another one is started, and no false start is counted
        return events

    def _kill_the_disobedient(self) -> list[ev.Event]:
        now, events = time.monotonic(), list[ev.Event]()
        for name, slot in list(self._slots.items()):
            if any(obey_by is not None and now > obey_by for obey_by in slot.on.values()):
                events += self._replace_by_force(name, "it did not stop when told to")
        return events

    # ----------------------------------------------------------------------------------------------------- slots

    def _follow_cluster(self) -> None:
        """Start workers up to the number the cluster can hold now, and let those go whose node is about to."""
        self._followed = time.monotonic()
        leaving = self._head.leaving
        for slot in self._slots.values():
            if slot.node in leaving:  # it ends like one that is sent SIGTERM; telling it twice does no harm
                slot.actor.retire.remote()
        for _ in range(self._wanted() - len(self._slots)):
            name = f"w{self._made}"
            self._made += 1
            actor = self._actor_class.remote(self._config, self.gpus)
            self._slots[name] = _Slot(actor, actor.hello.remote(), time.monotonic())

    def _wanted(self) -> int:
        if isinstance(self._resources.workers, int):
            return self._resources.workers
        return sum(map(self._fits, self._head.staying))

    def _fits(self, node: Node) -> int:
        slots = node.resources.get("CPU", 0.0) / self._resources.cpu
        return int(min(slots, node.resources.get("GPU", 0.0) / self.gpus) if self.gpus else slots)

    def _gpus_a_slot(self) -> float:
        if self._resources.gpu == "auto":
            return 1.0 if any(node.resources.get("GPU") for node in self._head.staying) else 0.0
        return float(self._resources.gpu)

    def close(self) -> None:
        """End all workers."""
        self._head.close()
        for slot in self._slots.values():
            ray.kill(slot.actor)
        self._slots.clear()


def _died(error: RayActorError) -> str:
    text = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
    return text if len(text) <= 300 else text[:297] + "..."
