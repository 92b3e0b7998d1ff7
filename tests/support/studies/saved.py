"""Studies in a database, driven in the simulator, whose trials write real checkpoints where real
ones would."""

import sqlite3
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sqlalchemy import make_url

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.domain import events as ev
from hpsearch.domain.history import Changes, History
from hpsearch.running.checkpoint_folders import MARKER, Mark, StudyFolder, folder_of_new
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver, watched_by
from hpsearch.running.driver.sweeping import Sweeper
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.study_run.on_ray import claim_folder
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from support.files.checkpoints import saved
from support.studies.small import Bowl, spec_with
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.folders import folder_at, inside, trial_folder


def surpassed(name: str, trials: int = 14) -> StudySpec:
    """A study whose trials all end, more of them than keep their checkpoints."""
    return spec_with(
        study=name,
        budget={"trials": trials, "per_trial": {"epochs": 3}},
        search={"sampler": "random", "pruner": "none"},
    )


class Saving:
    """A simulated executor that writes a checkpoint with each report, and begins where the one it
    is given ends.

    Args:
        inner: What says what happens when.
        folder: The study's own folder.
        whose: What every checkpoint holds.
    """

    def __init__(self, inner: SimulatedExecutor, folder: str, whose: str) -> None:
        self._inner, self._folder, self._whose = inner, folder, whose
        self._saved: dict[int, str] = {}
        self.began: dict[int, float] = {}

    def launch(self, order: ev.Launch) -> None:
        if order.resume_from:
            with opened(order.resume_from) as checkpoint:
                files = checkpoint.files
                assert (files / "whose").read_text() == self._whose
                order = replace(order, resume_from=(files / "resource").read_text())
        self.began[order.trial] = float(order.resume_from or 0.0)
        self._inner.launch(order)

    def advance(self, order: ev.Advance) -> None:
        self._inner.advance(order)

    def stop(self, order: ev.Stop) -> None:
        self._inner.stop(order)

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        self._inner.recorded(trial, attempt, resource)

    def poll(self, timeout_s: float) -> list[ev.Event]:
        return [self._with_files(event) for event in self._inner.poll(timeout_s)]

    def _with_files(self, event: ev.Event) -> ev.Event:
        match event:
            case ev.Reported():
                self._saved[event.trial] = self._save(event.trial, event.resource)
                return replace(event, checkpoint=self._saved[event.trial])
            case ev.Stopped():
                return replace(event, checkpoint=self._saved.get(event.trial))
        return event

    def _save(self, trial: int, resource: float) -> str:
        def fill(draft: Path) -> None:
            (draft / "resource").write_text(str(resource))
            (draft / "whose").write_text(self._whose)

        checkpoints = Checkpoints(inside(self._folder, trial_folder(trial)))
        return str(saved(checkpoints, int(resource * 10), fill))


def drive(
    store: Store,
    spec: StudySpec,
    history: History,
    home: StudyFolder,
    *,
    whose: str,
    stop_after: int | None = None,
) -> Saving:
    """Drive a study to its end, or until so many reports, with removals, as `hpsearch run` and
    `resume` do."""
    executor = SimulatedExecutor(Bowl(seconds_per_unit=1.0), trial_budget(spec), 2)
    executor.now = 1e6 * (1 + sum(len(trial.attempts) for trial in history.trials))
    saving = Saving(executor, home.folder, whose)
    lease = store.acquire(history.study.id, "driver", 1e5)
    store.refresh(history, -1)
    claim_folder(store, history, home, lease)
    study = build_study(history, spec)
    reports = 0

    def watch(study: object, changes: Changes, now: float) -> None:
        nonlocal reports
        reports += len(changes.reports)
        if stop_after is not None and reports >= stop_after:
            driver.request_stop()

    with closing(Sweeper(home)) as sweeper:
        sweeper.begin(history.trials)
        watched = watched_by(sweeper.watch, watch)
        driver = Driver(study, saving, store, lease, watched, executor.clock)
        driver.run()
    store.release(lease)
    return saving


def run(
    store: Store,
    spec: StudySpec,
    root: str,
    *,
    whose: str | None = None,
    stop_after: int | None = None,
) -> StudyFolder:
    """Create a study and drive it."""
    home = folder_of_new(spec, root)
    history = create_study(store, spec, home.folder, home.mark.uid)
    drive(store, spec, history, home, whose=whose or spec.study, stop_after=stop_after)
    return home


def an_old_study(store: Store, root: str, name: str, stop_after: int) -> None:
    """A study as versions before had it: no uid, its trials' folders in the root itself, and no
    mark."""
    spec = surpassed(name)
    home = StudyFolder(Mark(name, uuid.uuid4().hex), root)
    history = create_study(store, spec, root, home.mark.uid)
    drive(store, spec, history, home, whose=name, stop_after=stop_after)
    folder_at(root).dissolve(MARKER)
    with closing(sqlite3.connect(str(make_url(store.url).database))) as connection, connection:
        connection.execute("UPDATE studies SET uid = NULL WHERE name = ?", (name,))


def owners(store: Store, name: str) -> dict[int, str]:
    """Whose files the checkpoints hold that the trials of a study name."""
    found = {}
    for trial in store.load(name).trials:
        if trial.checkpoint is not None:
            with opened(trial.checkpoint) as checkpoint:
                found[trial.number] = (checkpoint.files / "whose").read_text()
    return found


def trial_folders(folder: str) -> list[str]:
    """The folders of trials in a folder."""
    return sorted(name for name in folder_at(folder).entries() if name.startswith("trial-"))
