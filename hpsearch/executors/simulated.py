"""Slots of a simulated cluster on a virtual clock: the same brain, searcher, ledger and store, in seconds.

Nothing is trained: a `Curves` says what a configuration would measure at a resource and how long it takes to get
there. Time moves only in `poll`, to the next thing that happens; use `clock` as the driver's clock. Exact: the same
orders give the same events.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hpsearch import events as ev
from trials.contract import Budget, Diverged


class Curves(Protocol):
    """What configurations would do."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The metrics at a resource.

        Raises:
            Diverged: Training does not get there.
        """

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training from nothing up to a resource."""


@dataclass
class _Run:
    """An attempt in progress."""

    order: ev.Launch
    slot: str
    resource: float
    until: float
    trained_until: float
    """The time at which the last report was made."""
    started: float
    waiting: bool = False


class SimulatedExecutor:
    """Runs attempts on imagined slots.

    Args:
        curves: What configurations would do.
        budget: The trial budget with its report grid.
        workers: How many slots.
        gpus: GPUs a slot.
        losses: Times at which the slot that has worked longest is lost, with what it runs; a new one comes at once.
    """

    def __init__(
        self, curves: Curves, budget: Budget, workers: int, gpus: float = 1.0, losses: Sequence[float] = ()
    ) -> None:
        self.now = 0.0
        self._curves = curves
        self._budget = budget
        self._gpus = gpus
        self._runs: dict[tuple[int, int], _Run] = {}
        self._happens: list[tuple[float, int, tuple[_Run, float | None] | None]] = []
        self._count = 0
        self._made = 0
        self._ready: list[ev.Event] = []
        for _ in range(workers):
            self._slot_up()
        for time in losses:
            self._at(time, None)

    def clock(self) -> float:
        """The virtual time, in seconds."""
        return self.now

    # -------------------------------------------------------------------------------------------------- commands

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt on its slot."""
        key = (order.trial, order.attempt)
        if key in self._runs:
            return
        resource = float(order.resume_from) if order.resume_from else 0.0
        self._runs[key] = _Run(order, order.slot, resource, order.until, self.now, self.now)
        self._train(self._runs[key])

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt train on."""
        run = self._runs.get((order.trial, order.attempt))
        if run is None or order.until <= run.until:
            return
        run.until = order.until
        if run.waiting:
            run.waiting, run.trained_until = False, self.now
            self._train(run)

    def stop(self, order: ev.Stop) -> None:
        """End an attempt: its state is that of its last report."""
        run = self._runs.pop((order.trial, order.attempt), None)
        if run is not None:
            checkpoint = str(run.resource) if run.resource else None
            self._ready.append(ev.Stopped(order.trial, order.attempt, run.resource, checkpoint))

    # ---------------------------------------------------------------------------------------------------- events

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """The next events; the clock moves to them, or by the timeout if there are none until then."""
        if not self._ready:
            give_up = self.now + timeout_s
            while self._happens and self._happens[0][0] <= give_up and not self._ready:
                self.now, _, what = heapq.heappop(self._happens)
                self._happen(what)
            if not self._ready:
                self.now = give_up
        events, self._ready = self._ready, []
        return events

    def _at(self, time: float, what: tuple[_Run, float | None] | None) -> None:
        self._count += 1
        heapq.heappush(self._happens, (time, self._count, what))

    def _train(self, run: _Run) -> None:
        """Schedule the run's next report, or its end."""
        level = next((level for level in self._budget.report_at if level > run.resource), None)
        seconds = self._curves.seconds
        params = run.order.params
        stretch = 0.0 if level is None else seconds(params, level) - seconds(params, run.resource)
        self._at(run.trained_until + stretch, (run, level))

    def _happen(self, what: tuple[_Run, float | None] | None) -> None:
        if what is None:
            self._lose_a_slot()
            return
        run, level = what
        key = (run.order.trial, run.order.attempt)
        if self._runs.get(key) is not run:
            return
        limit = run.order.time_limit_s
        if level is None:
            self._end(key, ev.Finished(*key))
        elif limit is not None and self.now - run.started > limit:
            self._end(key, ev.Failed(*key, "timeout", f"ran past its time limit of {limit:g} s"))
        else:
            self._report(run, key, level)

    def _report(self, run: _Run, key: tuple[int, int], level: float) -> None:
        try:
            metrics = self._curves.measure(run.order.params, run.order.seed, level)
        except Diverged as error:
            self._end(key, ev.Failed(*key, "diverged", str(error)))
            return
        run.resource, run.trained_until = level, self.now
        self._ready.append(ev.Reported(*key, level, metrics, checkpoint=str(level)))
        run.waiting = run.until <= level < self._budget.total
        if not run.waiting:
            self._train(run)

    def _end(self, key: tuple[int, int], event: ev.Event) -> None:
        del self._runs[key]
        self._ready.append(event)

    # ----------------------------------------------------------------------------------------------------- slots

    def _slot_up(self) -> None:
        self._ready.append(ev.SlotUp(f"s{self._made}", "simulated", "simulated", self._gpus))
        self._made += 1

    def _lose_a_slot(self) -> None:
        if not self._runs:
            return
        key = min(self._runs, key=lambda k: self._runs[k].started)
        slot = self._runs.pop(key).slot
        self._ready.append(ev.SlotDown(slot, "its node was lost"))
        self._slot_up()
