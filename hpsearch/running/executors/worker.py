"""A worker: one process that trains one attempt at a time and stays warm between them.

It knows no cluster. Orders come in by `launch`, `advance`, `stop` and `recorded`; events go out by
`poll`. All of these return at once (`poll` after its timeout), while a thread of the worker's own
trains. Everything expensive stays in the process: imported libraries, the task, its prepared data,
and the pretrained weights that the task itself keeps.

The way of one report, from the training to the database and back (`brain.study` says what is
decided on it):

 1. `trials.running.runner.Runner.advance` yields what the task reports, up to the level at which
 the attempt has to wait, `Control.until`.
 2. `Execution` makes it a `Reported`, with the newest whole checkpoint and the best one. At the
 level where it waits, it saves first.
 3. `Thinning` holds it back if the attempt has made very many, and neither a level of the study
 nor some seconds have passed. The last one of an attempt is never left out.
 4. `Worker.poll` hands it out with what comes within `GATHER_S`, or at once where it waits.
 5. That is the answer to the long poll of the actor (`ray_slot`). `RayExecutor.poll` gives the
 events of all slots to the driver, in order.
 6. `Driver` has the brain decide on them, and `Journal.write` commits all that has changed in one
 transaction (`store.contents.write`), fenced by the lease.
 7. Then the driver tells the executor what is recorded, and sends the commands. They go out with
 the next poll: older checkpoints are removed at the next report, and `Advance` raises
 `Control.until`, which lets the training go on.
"""

import os
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Protocol

from hpsearch.domain import events as ev
from hpsearch.running.checkpoint_folders import mark_of
from hpsearch.running.executors import worker_process
from hpsearch.running.executors.attempt.attempt_log import Carry, logged, note_beginning, note_end
from hpsearch.running.executors.attempt.execution import (
    RETIRED,
    Control,
    Ending,
    Execution,
    Message,
)
from hpsearch.running.executors.worker_config import WorkerConfig, WorkerState
from trials.checkpoints.disk.log_file import LogFile
from trials.checkpoints.folders import is_url
from trials.contract import ProcessEnded, Ranks
from trials.devices import gpu
from trials.devices.memory import LEAK_BYTES, allocated_bytes, keeps_more, release_memory

GATHER_S = 0.004
"""How long `poll` waits for more events after the first one, so that they go out in one message. It
does not wait where an attempt waits for an answer."""
FAULT_LINES = 3  # of a traceback, in which a failure may name the GPU


@dataclass(frozen=True, slots=True)
class ReplaceWorker:
    """Asks the executor to replace this worker. It comes together with the end of an attempt."""

    why: str
    retires: bool = False  # the worker was told to end: it takes no attempt any more


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of the log of an attempt, for an executor whose machine has the study's folder."""

    trial: int
    attempt: int
    part: str  # the end of its file's name
    text: str  # all of it


@dataclass(frozen=True, slots=True)
class GpuFault:
    """In place of the end of an attempt: torch cannot use the GPU of this worker."""

    why: str


Answer = ev.Event | ReplaceWorker | LogPart | GpuFault


class Team(Protocol):
    """The other processes that train each attempt together with a worker."""

    def begin(self, order: ev.Launch, data: Any) -> Ranks:
        """Let them train an attempt, with `launch`'s argument; returns all ranks."""

    def verdict(self, ending: Ending) -> tuple[Ending, str | None]:
        """The ending on all ranks, by the worker's own, and why the worker is to be replaced."""


class Worker:
    """Trains attempts, one after another.

    Args:
        fetch: Makes the data from `launch`'s argument.
        device: The torch device that attempts train on.
        memory_fraction: This worker's part of the device's memory; 1 and more for all of it.
        prints_into_logs: Whether this process prints into the log of an attempt while it runs.
        team: The other processes of each attempt; None without any.
    """

    def __init__(
        self,
        config: WorkerConfig,
        fetch: Callable[[Any], Any],
        device: str = "cpu",
        memory_fraction: float = 1.0,
        *,
        prints_into_logs: bool = False,
        team: Team | None = None,
    ) -> None:
        self._team = team
        self._prints_into_logs = prints_into_logs
        self._state = WorkerState(config, fetch, device, memory_fraction)
        self._device = device
        self._orders: SimpleQueue[tuple[ev.Launch, Any, Control]] = SimpleQueue()
        self._controls: dict[tuple[int, int], Control] = {}
        self._events: list[Answer] = []
        self._held_back: list[ev.Event] = []
        """Sent together with the next event, not as a message of its own."""
        self._news = threading.Condition()
        self._urgent = False
        self._retiring = self._signalled = False
        self._log: LogFile | None = None  # of the attempt that runs
        self._is_over = False  # true if nothing is said any more: another worker takes its place
        threading.Thread(target=self._work, name="trials", daemon=True).start()

    def launch(self, order: ev.Launch, data: Any) -> None:
        """Start an attempt as soon as the one before has ended. Repeating it has no effect."""
        key = (order.trial, order.attempt)
        if key in self._controls:
            return
        control = Control(order.until, stop=self._retiring, retired=self._retiring)
        self._controls[key] = control
        self._orders.put((order, data, control))

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt train on."""
        control = self._controls.get((order.trial, order.attempt))
        if control is not None:
            control.given.update(order.given)
            control.until = max(control.until, order.until)
            control.changed.set()

    def stop(self, order: ev.Stop) -> None:
        """End an attempt after its current step."""
        control = self._controls.get((order.trial, order.attempt))
        if control is not None:
            control.save = control.save or order.save
            control.stop = True
            control.changed.set()

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        """Note what is in the database: the next report removes older checkpoints."""
        control = self._controls.get((trial, attempt))
        if control is not None:
            control.recorded = max(control.recorded, resource)

    def retire(self, *, signalled: bool = False) -> None:
        """Save the attempts that run, and start nothing more: this process will end."""
        self._signalled |= signalled and not self._retiring
        self._retiring = True
        controls = list(self._controls.values())
        for control in controls:
            control.retired = True
            control.signalled = self._signalled
            control.save = True
            control.stop = True
            control.changed.set()
        if not controls:
            self._emit(ReplaceWorker(RETIRED, retires=True), urgent=True)

    def give_up(self, why: str) -> None:
        """Lose the attempt that runs, if any: this process cannot go on."""
        self._emit(ReplaceWorker(why), urgent=True, is_last=True)

    def fail(self, order: ev.Launch, failure: ev.Failed) -> None:
        """Fail an attempt that another process has failed, even if it hangs in this one."""
        if (order.trial, order.attempt) not in self._controls:
            return
        if self._log is not None:
            note_end(self._log, self._state.config, None, failure)
        self._emit(failure, ReplaceWorker(failure.text), urgent=True, is_last=True)

    def poll(self, timeout_s: float) -> list[Answer]:
        """Events since the last call; waits for the first one."""
        with self._news:
            if self._news.wait_for(lambda: bool(self._events), timeout_s):
                self._news.wait_for(lambda: self._urgent, GATHER_S)
            events, self._events = self._events, []
            self._urgent = False
        return events

    def _work(self) -> None:
        while True:
            order, data, control = self._orders.get()
            try:
                self._attempt(order, data, control)
            except BaseException:  # noqa: BLE001 - it ends the process
                traceback.print_exc()
                # Without its thread, a worker would take orders and never answer; one that has
                # ended is replaced.
                os._exit(1)
            finally:
                self._controls.pop((order.trial, order.attempt), None)

    def _attempt(self, order: ev.Launch, data: Any, control: Control) -> None:
        control.limit(order.time_limit_s)
        before = allocated_bytes(self._device)
        target = self._state.config.log(order.trial, order.attempt)
        ending: Ending | None = None
        why: str | None = None
        lost: str | None = None
        try:
            # Its log is whole before its end is known: a study that ends may end this process.
            carry = self._carrying(order)
            with logged(target, redirects=self._prints_into_logs, carry=carry) as log:
                self._log = log
                if log is not None:
                    note_beginning(log, order, self._device)
                ranks = None if self._team is None else self._team.begin(order, data)
                execution = Execution(
                    self._state, order, control, self._hold_back, self._send, log, ranks
                )
                try:
                    ending = execution.end_run(execution.run(data))
                    if self._team is not None:
                        ending, why = self._team.verdict(ending)
                except ProcessEnded as end:
                    lost = str(end)
                finally:
                    reached, processes = execution.reached, execution.before
                    del execution
                    if self._device != "cpu":
                        release_memory()
                    left = worker_process.end_those_left(processes)
                    why = why or left
                    if log is not None and lost is not None:
                        log.note(f"lost: {lost}")
                    elif log is not None and ending is not None:
                        note_end(log, self._state.config, reached, ending, left)
        finally:
            if lost is not None:
                self._log = None
                self.give_up(lost)
            elif ending is not None:
                ending = replace(ending, held_s=time.monotonic() - control.ordered)
                self._log = None
                if isinstance(ending, ev.Failed) and self._device != "cpu":
                    lines = ending.details.splitlines()[-FAULT_LINES:]
                    if fault := gpu.fault_behind("\n".join([ending.text, *lines])):
                        self._emit(GpuFault(fault), urgent=True, is_last=True)
                self._emit(ending, *self._replacement(before, why), urgent=True)

    def _carrying(self, order: ev.Launch) -> Carry | None:
        """The way of a log to its study's folder; None if this machine has that folder, or it is in
        a store. Its driver has marked it before any attempt."""
        folder = self._state.config.checkpoints
        if not self._prints_into_logs or is_url(folder) or mark_of(folder) is not None:
            return None

        def carry(part: str, text: str) -> bool:
            self._emit(LogPart(order.trial, order.attempt, part, text), urgent=False)
            return True

        return carry

    def _replacement(self, before: int | None, why: str | None) -> list[ReplaceWorker]:
        """The request to replace this process, if it is to end, has to by its team, or has leaked
        GPU memory. `before` are the bytes allocated before the attempt; None without a GPU."""
        if self._retiring:
            return [ReplaceWorker(RETIRED, retires=True)]
        if why is not None:
            return [ReplaceWorker(why)]
        now = allocated_bytes(self._device)
        if before is None or now is None or keeps_more() or now - before <= LEAK_BYTES:
            return []
        left = now - before
        leak = f"{left >> 20} MiB of GPU memory were not freed after its last trial"
        return [ReplaceWorker(leak)]

    def _hold_back(self, event: ev.Event) -> None:
        with self._news:
            self._held_back = [event]

    def _send(self, event: Message, waits: bool) -> None:
        self._emit(event, urgent=waits)

    def _emit(self, *events: Answer, urgent: bool, is_last: bool = False) -> None:
        with self._news:
            if self._is_over:
                return
            self._is_over = is_last
            is_first = not self._events
            self._events += [*self._held_back, *events]
            self._held_back = []
            self._urgent |= urgent
            if is_first or urgent:  # `poll` waits for nothing else
                self._news.notify_all()
