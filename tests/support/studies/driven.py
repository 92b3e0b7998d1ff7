"""Simulated studies in a real database, driven to their end or until they are interrupted."""

import math
from contextlib import closing

from benchmarks.simulation.running import Curves, Straight
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec


def drive(
    url: str,
    spec: StudySpec,
    curves: Curves,
    *,
    workers: int = 1,
    stop_after: int | None = None,
    resume: bool = False,
) -> None:
    """Drive a study of a database.

    Args:
        url: The database.
        spec: The study.
        curves: What its configurations do.
        workers: How many slots.
        stop_after: Interrupt it after so many reports.
        resume: The database has it already.
    """
    reports = 0

    def watch(study: object, changes: object, now: float) -> None:
        nonlocal reports
        reports += len(changes.reports)  # type: ignore[attr-defined]
        if stop_after is not None and reports >= stop_after:
            driver.request_stop()

    executor = Straight(curves, trial_budget(spec), workers)
    with closing(Store.open(url)) as store:
        history = store.load(spec.study) if resume else create_study(store, spec, "")
        executor.now = history.study.active_seconds
        lease = store.acquire(history.study.id, "driver", 1e9)
        study = build_study(history, spec)
        driver = Driver(study, executor, store, lease, watch, executor.clock, poll_s=math.inf)
        driver.run()
        store.release(lease)
