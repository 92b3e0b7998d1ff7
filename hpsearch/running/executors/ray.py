"""Slots on a Ray cluster: one long-lived actor a slot (`ray_slot`), in its own placement group.

A group waits in Ray's queue until a node has the resources of a worker, and is a demand that an
autoscaler starts nodes for. A study that counts its workers itself (`workers: auto`) takes what is
free, and queues for more only while it has nothing, or where an autoscaler would bring a node and
every worker is busy: so several studies share a cluster. Of the workers that have nothing to do it
keeps one, whose next work is the sign that there may be more. With `gpu: share`, a group is a whole
GPU, and takes as many slots as the driver says.

Each actor is polled again once the driver is done with the events of the poll before; a poll that
returns without events is a sign of life. Prepared data is made once by a Ray task and shared
through the object store. Actors are not detached: when a driver dies, its workers end too.
"""

import logging
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

from hpsearch.domain import events as ev
from hpsearch.domain.facts import IDLE_KEPT_S, ErrorKind
from hpsearch.errors import Unusable
from hpsearch.running.executors import worker_process
from hpsearch.running.executors.attempt.attempt_log import keep
from hpsearch.running.executors.cluster.ray_cluster import SILENT_S, HeadNode, ask_head
from hpsearch.running.executors.ranks import FollowerActor, Process
from hpsearch.running.executors.ray_slot import (
    AttemptKey,
    DataRef,
    PlacementGroups,
    RaySlot,
    WorkerActor,
    WorkerReady,
)
from hpsearch.running.executors.slot_needs import SlotNeeds
from hpsearch.running.executors.worker import Answer, GpuFault, LogPart, ReplaceWorker
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from trials.foreign import text_of

ALL = 10**9  # slots of a study that takes all that it can get
STEADY_S = 3.0
"""The resources of one more worker must have been free for this long: a study that has none yet is
served first, from Ray's queue. A room that finds no place in this time is given up by a study that
has others."""
FOLLOW_S = 1.0  # the time between two checks for nodes that came or went
STOP_GRACE_S = 30.0
"""The seconds in which a worker must stop an attempt before it is killed and replaced."""
STARTS = 5  # a worker may take so many times the `worker_timeout` until it is ready
MOST_FALSE_STARTS = 3
"""Workers in a row that die before they are ready, after which the cluster counts as unusable."""
NEVER_RAN = "The actor never ran"
"""In Ray's text about an actor where the driver asks for a token that the cluster does not have."""
FAULTY = (ErrorKind.ERROR, ErrorKind.OUT_OF_MEMORY)
"""Failures after which a worker is replaced: the state of its process may be broken."""
SUSPECT = (*FAULTY, ErrorKind.DISK_FULL)
"""Failures that the prepared data may have caused: it is prepared again for the next attempt."""
KEPT_DATA = 8  # prepared data sets that stay in the object store
REPORT_LOOKS = 4  # how often a worker says within the `report_deadline` that it has no report
POLL_S = 30.0  # the longest a worker keeps a poll waiting
AWAY_S = 1.0  # a process that did not listen for this much longer than it meant to was away
IDLE_S = 0.2  # the longest wait while there are no workers: new nodes are looked for
MOST_LETTERS = 300  # of Ray's text about an actor that died

log = logging.getLogger("hpsearch")


class RayExecutor:
    """Runs attempts on the actors of the Ray cluster that this process is part of, see `cluster`.
    Raises UserError if no node of the cluster has the resources of a slot."""

    def __init__(
        self, config: WorkerConfig, resources: Resources, head: HeadNode | None = None
    ) -> None:
        self._config = config
        self._resources = resources
        self._head = head or HeadNode(resources.worker_timeout_s)
        self._needs = SlotNeeds(resources, self._head)
        self._free_since = math.inf
        """Since when there was room for one more worker, by the monotonic clock."""
        self._slots: dict[str, RaySlot] = {}
        self._fill: dict[str, int] = {}  # the slots of each shared GPU, by its type
        self._groups = PlacementGroups(self._head, self._needs.takes, resources.processes)
        self._made = 0
        self._false_starts = 0
        self._followed = 0.0
        self._listened = time.monotonic()
        self._hold_s = min(
            POLL_S, resources.worker_timeout_s / 3, resources.report_deadline_s / REPORT_LOOKS
        )
        self._task = config.load_task() if config.prepares else None
        self._data: dict[str, DataRef] = {}
        """References to prepared data, by the task's key of its settings, the latest last."""
        self._prepare = ray.remote(num_cpus=0)(_prepare)
        self._actor = self._remote(WorkerActor, {"poll": 1, "command": 1})
        self._follower = self._remote(FollowerActor, {"life": 1, "command": 1, "train": 1})
        self._kill = ray.remote(num_cpus=0, max_retries=0)(worker_process.kill)
        self._follow_cluster()

    def _remote(self, kind: type, groups: dict[str, int]) -> Any:
        cpus, gpus = self._resources.cpu, self._needs.gpus / self._needs.most
        options = {"max_restarts": 0, "concurrency_groups": groups}
        return ray.remote(num_cpus=cpus, num_gpus=gpus, **options)(kind)

    @property
    def gpus(self) -> float:
        """The GPUs of a slot, of all its processes."""
        return self._needs.gpus * self._resources.processes

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt on its slot."""
        slot = self._slots.get(order.slot)
        if slot is None:
            return  # it is gone: the driver has been sent a SlotDown, and ends the attempt
        slot.attempts[order.trial, order.attempt] = None
        slot.order(order, self._data_for(order))

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt train on."""
        slot = self._slot_of((order.trial, order.attempt))
        if slot is not None:
            slot.order(order)

    def stop(self, order: ev.Stop) -> None:
        """End an attempt. A worker that does not end it in time is killed and replaced."""
        key = (order.trial, order.attempt)
        slot = self._slot_of(key)
        if slot is None:
            return
        grace_s = 2 * self._resources.stop_grace_s if order.save else STOP_GRACE_S
        slot.attempts[key] = time.monotonic() + grace_s
        slot.order(order)

    def avoid(self, order: ev.Avoid) -> None:
        """Run nothing on a node for a while: its workers are given back as they become free."""
        text = "node %s is set aside for %.0f s: trials fail there, and not on other nodes"
        log.warning(text, order.node, order.seconds)
        self._head.avoided[order.node_id] = time.monotonic() + order.seconds

    def fill(self, order: ev.Fill) -> None:
        """Hold so many slots on each shared GPU of a type, as far as they have room."""
        if order.slots != self._fill.get(order.device, 1):
            log.info("%d trials at once on each %s now", order.slots, order.device)
        self._fill[order.device] = order.slots
        self._followed = 0.0

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        """Note that reports are in the database, for the next poll to carry."""
        slot = self._slot_of((trial, attempt))
        if slot is not None:
            slot.note_recorded((trial, attempt), resource)

    def _slot_of(self, attempt: AttemptKey) -> RaySlot | None:
        return next((slot for slot in self._slots.values() if attempt in slot.attempts), None)

    def _data_for(self, order: ev.Launch) -> DataRef | None:
        if self._task is None:
            return None
        params = self._config.params(order)
        key = self._task.data_key(params)
        box = self._data.pop(key, None) or [self._prepare.remote(self._config, params)]
        self._data[key] = box
        if len(self._data) > KEPT_DATA:
            del self._data[next(iter(self._data))]
        return box

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """Events of all workers, and of slots that come and go."""
        self._head.check()
        events: list[ev.Event] = []
        if time.monotonic() - self._followed > FOLLOW_S:
            events += self._follow_cluster()
        for slot in self._slots.values():
            slot.listen(self._hold_s)
        if not self._slots:
            timeout_s = min(timeout_s, IDLE_S)
            time.sleep(timeout_s)
            self._note_absence(timeout_s)
            return events
        if events:
            timeout_s = 0.0
        for name, answer in self._answers(timeout_s):
            events += self._take_in(name, answer)
        self._note_absence(timeout_s)
        return [*events, *self._replace_stuck()]

    def _note_absence(self, timeout_s: float) -> None:
        """Count no time in which this process stood still as a slot's silence."""
        now = time.monotonic()
        away_s = now - self._listened - timeout_s
        self._listened = now
        if away_s > AWAY_S:
            for slot in self._slots.values():
                slot.skip_silence(away_s)

    def _answers(self, timeout_s: float) -> list[tuple[str, Any]]:
        names = {slot.pending: name for name, slot in self._slots.items()}
        ready, rest = ray.wait(list(names), num_returns=1, timeout=timeout_s)
        if ready and rest:
            more, _ = ray.wait(rest, num_returns=len(rest), timeout=0)
            ready += more
        return [(names[call], call) for call in ready]

    def _take_in(self, name: str, call: Any) -> list[ev.Event]:
        slot = self._slots[name]
        try:
            answer = ray.get(call)
        except RayActorError as error:
            return self._gone(name, " ".join(text_of(error, MOST_LETTERS).split()))
        except RayError as error:
            last_line = text_of(error).strip().split("\n")[-1]
            return self._gone(name, last_line)
        slot.pending = None
        if slot.ready:
            return self._after(name, answer)
        return self._up(name, slot, answer)

    def _up(self, name: str, slot: RaySlot, found: WorkerReady) -> list[ev.Event]:
        self._false_starts = 0
        slot.ready = slot.placed = True
        slot.free_since = time.monotonic()
        self._head.awaited.pop(name, None)
        slot.processes, slot.device = found.processes, found.device
        if found.faults:
            return self._refuse(name, found.faults)
        numbers = ", ".join(str(each.number) for each in found.processes)
        where = f"{found.address} ({found.device}, process {numbers})"
        log.info("worker %s is ready on %s", name, where)
        node_id = found.processes[0].node
        gpu_id = slot.gpu_id if self._needs.shares_gpus else ""
        most = self._needs.most
        return [ev.SlotUp(name, found.address, found.device, self.gpus, node_id, gpu_id, most)]

    def _refuse(self, name: str, faults: Mapping[str, str]) -> list[ev.Event]:
        """Leave the nodes of a slot whose GPUs torch cannot use."""
        self._needs.refuse(faults, self._head)
        return self._gone(name, next(iter(faults.values())))

    def _after(self, name: str, answer: list[Answer]) -> list[ev.Event]:
        slot = self._slots[name]
        fault: str | None = None
        retires = False
        events: list[ev.Event] = []
        for event in answer:
            match event:
                case ReplaceWorker():
                    fault, retires = event.why, event.retires
                    continue
                case GpuFault():
                    return events + self._refuse(name, {slot.processes[0].node: event.why})
                case LogPart():
                    keep(self._config.log(event.trial, event.attempt), event.part, event.text)
                    continue
                case ev.Finished() | ev.Stopped() | ev.Failed():
                    slot.attempts.pop((event.trial, event.attempt), None)
                    slot.free_since = time.monotonic()
            events.append(event)
            if isinstance(event, ev.Failed) and event.kind in SUSPECT:
                self._data.clear()
            if isinstance(event, ev.Failed) and event.kind in FAULTY:
                fault = f"replaced after a fault of trial {event.trial}"
        if not events and slot.attempts:
            events.append(ev.Answered(name))
        if retires and slot.attempts:
            fault = None  # launched too late: the worker ends it, and asks again
        if fault is not None:
            replace = self._replace_by_force if slot.followers else self._gone
            events += replace(name, fault)
        return events

    def _gone(self, name: str, why: str) -> list[ev.Event]:
        slot = self._slots.pop(name)
        self._head.awaited.pop(name, None)
        self._followed = 0.0  # look for a replacement at once
        slot.kill()
        stays = all(self._head.offers(node) for node in slot.nodes)
        if slot.ready and stays and not slot.given_back:
            self._start_worker(slot.group)
        else:
            self._leave(slot)
        if not slot.ready:
            self._count_false_start(name, why)
            return []
        return [ev.SlotDown(name, why)]

    def _count_false_start(self, name: str, why: str) -> None:
        self._false_starts += 1
        log.warning("worker %s did not start: %s", name, why)
        if self._false_starts < MOST_FALSE_STARTS:
            return
        what = f"{self._false_starts} workers in a row did not start; the last one: {why}"
        hint = "check that every node has the driver's packages (docs/cluster.md)"
        if NEVER_RAN in why and os.environ.get("RAY_AUTH_MODE") == "token":
            hint = "the cluster must have the driver's RAY_AUTH_MODE and token (docs/cluster.md)"
        raise Unusable(what, hint)

    def _replace_by_force(self, name: str, why: str) -> list[ev.Event]:
        """Replace a worker that does not answer: Ray only asks, also one that is stopped."""
        ask_head(partial(self._kill_all, self._slots[name].processes))
        return self._gone(name, why)

    def _kill_all(self, processes: Sequence[Process]) -> list[Any]:
        return [
            self._kill.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(each.node, soft=False)
            ).remote(each.number)
            for each in processes
        ]

    def _replace_stuck(self) -> list[ev.Event]:
        """Replace workers that have not stopped in time, or whose answer is overdue."""
        now = time.monotonic()
        limit_s = self._resources.worker_timeout_s
        start_limit_s = STARTS * limit_s
        events: list[ev.Event] = []
        for name, slot in list(self._slots.items()):
            silent_s = now - slot.called_at
            if slot.is_late(now):
                events += self._replace_by_force(name, "it did not stop when told to")
            elif slot.ready and slot.pending is not None and silent_s > limit_s:
                why = f"no sign of life for {limit_s:g} s (worker_timeout)"
                events += self._replace_by_force(name, why)
            elif slot.placed and not slot.ready and silent_s > start_limit_s:
                log.warning("worker %s is not ready yet: it hangs; trying another", name)
                self._withdraw(name)
        return events

    def _follow_cluster(self) -> list[ev.Event]:
        """Start as many workers as the cluster has room for, and retire those whose node leaves.
        Waits while the head is silent, as Ray would hang."""
        if not self._head.answers:
            return []
        self._followed = now = time.monotonic()
        self._groups.give_back()
        leaving = self._head.leaving
        for slot in self._slots.values():
            if slot.nodes & leaving:
                slot.actor.retire.remote()  # repeating this has no effect
        waiting = self._without_place(now)
        free = self._needs.fitting(node.free for node in self._head.staying)
        more = self._missing(len(waiting), free, now)
        for _ in range(more):
            self._start_worker()
        for name in waiting[more:] if more < 0 else ():
            if now - self._slots[name].called_at > STEADY_S:
                self._withdraw(name)
        if self._needs.shares_gpus:
            self._fill_gpus(now)
        still = [slot for slot in self._slots.values() if not slot.placed]
        is_short = self._is_fixed or len(still) == len(self._slots)
        since = min((slot.called_at for slot in still), default=now)
        self._needs.note_waiting(is_short=is_short and now - since > STEADY_S)
        return self._give_back_idle(now)

    def _give_back_idle(self, now: float) -> list[ev.Event]:
        """Give back free workers of nodes set aside, and all idle ones but one."""
        free = {name: slot for name, slot in self._slots.items() if slot.is_idle(now)}
        aside = [name for name, slot in free.items() if slot.nodes & self._head.aside]
        idle = [name for name, slot in free.items() if slot.is_idle(now, IDLE_KEPT_S)]
        spare = {*aside, *idle[1:]}
        for name in spare:
            log.info("worker %s has nothing to do: its room is given back", name)
            self._withdraw(name)
        return [ev.SlotDown(name, "it had nothing to do") for name in spare]

    def _fill_gpus(self, now: float) -> None:
        """Start and give back slots of shared GPUs, to as many as there should be on each. None is
        started while one has nothing to do."""
        has_work = not any(slot.is_idle(now, STEADY_S) for slot in self._slots.values())
        by_group: dict[str, list[RaySlot]] = {}
        for slot in self._slots.values():
            if not slot.given_back:
                by_group.setdefault(slot.gpu_id, []).append(slot)
        for slots in by_group.values():
            device = next((slot.device for slot in slots if slot.ready), None)
            more = 0 if device is None else self._fill.get(device, 1) - len(slots)
            for _ in range(min(more, self._limit - len(self._slots)) if has_work else 0):
                self._start_worker(slots[0].group)
            for slot in slots[more:] if more < 0 else ():
                slot.give_back()

    @property
    def _is_fixed(self) -> bool:
        """True if the study waits for the stated number of workers, each in its own group."""
        return isinstance(self._resources.workers, int) and not self._needs.shares_gpus

    @property
    def _limit(self) -> int:
        workers = self._resources.workers
        return workers if isinstance(workers, int) else ALL

    def _without_place(self, now: float) -> list[str]:
        """The slots whose group has no place on a node yet, in the order of Ray's queue."""
        waiting = []
        for name, slot in self._slots.items():
            if not slot.placed and name in self._head.placed:
                slot.placed = True
                slot.called_at = now  # its worker starts now
                self._head.awaited.pop(name, None)
            if not slot.placed:
                waiting.append(name)
        return waiting

    def _missing(self, waiting: int, free: int, now: float) -> int:
        if any(slot.is_idle(now, STEADY_S) for slot in self._slots.values()):
            return -waiting
        if self._is_fixed:
            return self._limit - len(self._slots)
        has_place = len(self._slots) > waiting
        if free <= waiting:
            self._free_since = math.inf
        elif has_place:
            self._free_since = min(self._free_since, now)
            if now - self._free_since < STEADY_S:
                free = waiting
        is_busy = all(slot.attempts for slot in self._slots.values() if slot.placed)
        queues = not has_place or (self._needs.has_autoscaler and is_busy)
        return min(max(free, int(queues)) - waiting, self._limit - len(self._slots))

    def _start_worker(self, group: PlacementGroup | None = None) -> None:
        count = self._resources.processes
        group = group or self._groups.reserve()
        if group is None:
            return
        name = f"w{self._made}"
        self._made += 1
        followers = []
        for number in range(1, count):
            strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number)
            follower = self._follower.options(scheduling_strategy=strategy)
            followers.append(follower.remote(self._config))
        there = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0)
        actor = self._actor.options(scheduling_strategy=there).remote(
            self._config, self._needs.gpus, followers, self._resources.worker_timeout_s
        )
        self._head.awaited[name] = group
        ready = actor.ready.remote()
        self._slots[name] = RaySlot(actor, followers, group, ready, time.monotonic())

    def _withdraw(self, name: str) -> None:
        slot = self._slots.pop(name)
        self._head.awaited.pop(name, None)
        slot.kill()
        self._leave(slot)

    def _leave(self, slot: RaySlot) -> None:
        """Leave the group of a slot that is gone, unless others are in it."""
        if all(each.gpu_id != slot.gpu_id for each in self._slots.values()):
            self._groups.leave(slot.group)

    def close(self) -> None:
        """End all workers. A head that has just died is not waited for: Ray would wait for it, and
        then end this process."""
        ending = threading.Thread(target=self._end_all, name="ending", daemon=True)
        ending.start()
        ending.join(SILENT_S)
        self._head.close()

    def _end_all(self) -> None:
        for name in list(self._slots):
            self._withdraw(name)
        self._groups.give_back()


def _prepare(config: WorkerConfig, params: Mapping[str, Any]) -> Any:
    return config.load_task().prepare(params)
