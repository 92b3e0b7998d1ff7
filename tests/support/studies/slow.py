"""A study that goes on while a test looks at it: simulated trainings, a real driver, a real
database, and time that passes."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.domain import events as ev
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from support.patience import PATIENCE_S
from support.studies.small import Bowl, spec_with

POLL_S = 0.1
"""Between two reports."""


class _Slow(SimulatedExecutor):
    def poll(self, timeout_s: float) -> list[ev.Event]:
        time.sleep(POLL_S)
        return super().poll(1.0)


def slow_spec() -> StudySpec:
    """A study whose trials take an hour each."""
    return spec_with(
        study="slow",
        space={
            "x": {"type": "float", "low": 0.0, "high": 1.0},
            "kind": {"type": "categorical", "choices": ["oak", "elm"]},
        },
        budget={"trials": 200, "per_trial": {"epochs": 10_000}},
        search={"sampler": "random", "pruner": "none"},
    )


@contextmanager
def driven_slowly(url: str) -> Iterator[Driver]:
    """Drive such a study on two workers until the block ends."""
    spec = slow_spec()
    executor = _Slow(Bowl(seconds_per_unit=5.0), trial_budget(spec), 2)
    executor.now = time.time()
    with closing(Store.open(url)) as store:
        history = create_study(store, spec, "")
        lease = store.acquire(history.study.id, "driver", 1e9)
        driver = Driver(
            build_study(history, spec), executor, store, lease, clock=executor.clock, poll_s=1.0
        )
        thread = threading.Thread(target=driver.run)
        thread.start()
        try:
            yield driver
        finally:
            driver.request_stop()
            thread.join(timeout=PATIENCE_S)
            store.release(lease)
