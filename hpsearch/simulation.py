"""A whole study on recorded or computed curves: the real brain, search, ledger, driver and store on a virtual clock.

Nothing is trained and nothing is waited for: what happens and when is read from `Curves`. The study starts at time 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial

from hpsearch import events as ev
from hpsearch import wiring
from hpsearch.driver import LEASE_TTL_S, Driver, Watch, due_of
from hpsearch.executors.simulated import Curves, SimulatedExecutor
from hpsearch.levels import trial_budget
from hpsearch.records import History
from hpsearch.spec import StudySpec
from hpsearch.store.store import Store
from hpsearch.study import Study

OWNER = "simulation"
IN_MEMORY = "sqlite://"


class Straight(SimulatedExecutor):
    """A simulated executor that is polled straight to what happens next, or to the next of some moments.

    A driver asks for a short wait, to watch its limits; on a virtual clock that would be thousands of empty ticks. The
    limits that matter are among the moments instead.
    """

    moments: Iterable[float] = ()
    due: Callable[[], float | None] = staticmethod(lambda: None)
    """When an attempt will have used up what is reserved for it."""

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """The next events; the clock moves to them, or to the next moment if that comes first."""
        moments = (*self.moments, due) if (due := self.due()) is not None else self.moments
        ahead = [moment - self.now for moment in moments if moment > self.now]
        happening = [time - self.now for time, _, _ in self._happens]
        return super().poll(min(ahead) if ahead else max(happening, default=timeout_s))


def simulate(
    spec: StudySpec,
    curves: Curves,
    workers: int,
    *,
    gpus: float = 1.0,
    moments: Iterable[float] = (),
    watch: Watch = lambda study, changes, now: None,
    build: Callable[[Store, History, StudySpec], Study] = wiring.build_study,
) -> History:
    """Run a study to its end, in a database in memory, and return everything it has recorded.

    Its `report_deadline` is lifted: nothing hangs that was recorded, however far apart its reports are.

    Args:
        spec: The study file.
        curves: What configurations do, and how long it takes.
        workers: How many slots.
        gpus: GPUs a slot.
        moments: Times at which the driver ticks though nothing happens, for `watch`.
        watch: Called after every tick with the study, what was written, and the time.
        build: Makes the brain; another one may look over its shoulder.
    """
    patient = spec.resources.model_copy(update={"report_deadline_s": math.inf})
    spec = spec.model_copy(update={"resources": patient})
    with closing(Store.open(IN_MEMORY)) as store:
        history = wiring.create_study(store, spec, "")
        executor = Straight(curves, trial_budget(spec), workers, gpus)
        limit = spec.budget.wall_clock_s
        executor.moments = sorted({*moments, *([] if limit is None else [limit])})
        lease = store.acquire(history.study.id, OWNER, executor.now, LEASE_TTL_S)
        study = build(store, history, spec)
        executor.due = partial(due_of, study)
        Driver(study, executor, store, lease, watch, executor.clock).run()
    return history
