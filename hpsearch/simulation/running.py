"""A whole study on recorded or computed curves: the real brain, search, driver and store, on a
virtual clock that starts at 0. Nothing is trained, and nothing waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import EarlierStudy
from hpsearch.domain.history import History
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import POLL_S, Driver, Watch
from hpsearch.running.study_run.brain import build_study
from hpsearch.simulation.executor import Curves, SimulatedExecutor
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec

OWNER = "simulation"
IN_MEMORY = "sqlite://"


class Straight(SimulatedExecutor):
    """A simulated executor whose polls last until the next event, or the next of some moments.

    A driver waits for a short time only, to check its limits, which would be thousands of empty
    ticks on a virtual clock. Here the limits are among the moments instead.
    """

    moments: Iterable[float] = ()

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """The next events; the clock moves to them, or to the next moment if that comes first."""
        now = self.now
        ahead = [moment - now for moment in self.moments if moment > now]
        if ahead:
            return super().poll(min(timeout_s, *ahead))
        happening = [moment.time - now for moment in self._happens]
        longest_s = max(happening, default=POLL_S)
        return super().poll(min(timeout_s, longest_s))


def simulate(
    spec: StudySpec,
    curves: Curves,
    workers: int,
    *,
    gpus: float = 1.0,
    moments: Iterable[float] = (),
    watch: Watch | None = None,
    build: Callable[[History, StudySpec], Study] = build_study,
    earlier: Sequence[EarlierStudy] = (),
) -> History:
    """Run a study to its end, in a database in memory, and return all its records.

    Its `report_deadline` is lifted: a recorded run does not hang, however far apart its reports
    are.

    Args:
        workers: The number of slots.
        gpus: GPUs a slot.
        moments: Times at which the driver ticks though nothing happens, for `watch`.
        watch: Called after every tick with the study, the records written, and the time.
        build: Makes the brain; for callers that observe it.
        earlier: The evidence of earlier studies, in place of the study file's `warm_start`.
    """
    patient = spec.resources.model_copy(update={"report_deadline_s": math.inf})
    spec = spec.model_copy(update={"resources": patient})
    executor = Straight(curves, trial_budget(spec), workers, gpus)
    limit_s = spec.budget.wall_clock_s
    executor.moments = sorted({*moments, *([] if limit_s is None else [limit_s])})
    with closing(Store.open(IN_MEMORY)) as store:
        history = create_study(store, spec, "", earlier=earlier)
        lease = store.acquire(history.study.id, OWNER, LEASE_TTL_S)
        study = build(history, spec)
        Driver(study, executor, store, lease, watch, executor.clock, poll_s=math.inf).run()
    return history
