"""A Tuner: runs the study that it describes, and takes it up again where it exists already."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
import yaml

from hpsearch.adapters import loading
from hpsearch.bridges.ray_tune.plan import PlannedStudy, plan_of
from hpsearch.bridges.ray_tune.results import ResultGrid
from hpsearch.checkpoint_folders import folder_of, folder_of_new
from hpsearch.creation.study import create_study, spec_of
from hpsearch.domain.history import History
from hpsearch.domain.records import StudyState
from hpsearch.errors import Interrupted, UserError
from hpsearch.live import LiveView, Look
from hpsearch.store.store import Store
from hpsearch.study_file.reading import parse
from hpsearch.study_file.text.editing import with_budget
from hpsearch.study_run import on_ray
from hpsearch.study_run.ownership import refuse_if_held
from hpsearch.study_run.signals import stopped_by_signals
from trials.script import end_import

if TYPE_CHECKING:
    from ray.tune import RunConfig, TuneConfig

LIMITS = ("trials", "wall_clock")
"""Limits that another run of a script may raise."""
SAME = ("task", "space", "objective")
"""Sections of a study file that another run of a script may not change."""


class NotCarriedOverWarning(UserWarning):
    """Something that Ray Tune would follow, and a study does not."""


class Tuner:
    """Searches for a trainable's best config.

    Args:
        trainable: A function of a config, or a subclass of `Trainable`; either may be wrapped by
            `with_parameters` and `with_resources`.
        param_space: The config: ranges of Ray Tune, and constants.
        tune_config: The metric, and how much is tried.
        run_config: The study's name and place, and how long a trial is.

    Where a worker imports the script, the import ends here: the trainable is there by then.

    Raises:
        UserError: Something that it is given cannot be carried over.
    """

    def __init__(
        self,
        trainable: Any = None,
        *,
        param_space: Mapping[str, Any] | None = None,
        tune_config: TuneConfig | None = None,
        run_config: RunConfig | None = None,
    ) -> None:
        end_import()
        self._plan = plan_of(trainable, param_space, tune_config, run_config)

    @classmethod
    def can_restore(cls, path: str | os.PathLike[str]) -> bool:
        """False: a Tuner continues its study where it exists, and needs no other one for that."""
        return False

    def fit(self) -> ResultGrid:
        """Run the study, or continue it where it exists already, and return its trials.

        Raises:
            Interrupted: It was stopped by a signal, with everything saved.
            UserError: It exists with another space, task or objective.
            StudyHeld: Another driver runs it.
            Unreachable: The database or the cluster does not answer.
        """
        plan = self._plan
        if ray.is_initialized():
            what = "Ray is initialised in this process, and a study starts or joins it itself"
            raise UserError(what, "remove ray.init(); set RAY_ADDRESS to use a cluster")
        if plan.dropped:
            message = "not carried over from Ray Tune (docs/ray-tune.md):"
            text = "\n  ".join([message, *plan.dropped])
            warnings.warn(text, NotCarriedOverWarning, stacklevel=2)
        if plan.storage.startswith("sqlite:///"):
            Path(plan.folder).parent.mkdir(parents=True, exist_ok=True)
        with closing(Store.open(plan.storage)) as store:
            if not plan.quiet:
                place = f"study {plan.name} in {store.display_url}"
                print(place, file=sys.stderr)  # noqa: T201 - beside what the live view prints
            if plan.name in store.study_names():
                _continue(store, plan)
            else:
                _begin(store, plan)
        return ResultGrid(plan.storage, plan.name, plan.folder)

    def get_results(self) -> ResultGrid:
        """The trials so far."""
        return ResultGrid(self._plan.storage, self._plan.name, self._plan.folder)


def _begin(store: Store, plan: PlannedStudy) -> None:
    name = f"the study of {plan.name}"
    spec = parse(plan.text, base=plan.base, name=name, inspect=loading.inspect)
    home = folder_of_new(spec, None)
    study_run = on_ray.StudyRun(spec, home, spec.resources, _address())
    _drive(store, plan, study_run, lambda: create_study(store, spec, home.folder, home.mark.uid))


def _continue(store: Store, plan: PlannedStudy) -> None:
    """Drive a study that exists, unless it has ended."""
    refuse_if_held(store, plan.name)
    history = store.load(plan.name)
    record = history.study
    more = _more(record.spec, plan)
    if more:
        record.spec = with_budget(record.spec, more)
    elif record.state is StudyState.FINISHED:
        return
    spec = spec_of(record)
    known = len(spec.enqueue) + len(record.enqueued)
    wanted = yaml.safe_load(plan.text).get("enqueue", [])[known:]  # more points of its grids
    home = folder_of(spec, record, None)
    study_run = on_ray.StudyRun(spec, home, spec.resources, _address(), wanted)
    _drive(store, plan, study_run, lambda: history)


def _more(text: str, plan: PlannedStudy) -> dict[str, Any]:
    """The limits of a study that a script now states otherwise."""
    before, now = yaml.safe_load(text), yaml.safe_load(plan.text)
    changed = [section for section in SAME if before[section] != now[section]]
    if before["budget"]["per_trial"] != now["budget"]["per_trial"]:
        changed.append("budget.per_trial")
    if changed:
        what = f"study {plan.name} exists with another {', '.join(changed)}"
        raise UserError(what, "give the new one another tune.RunConfig(name=...)")
    wanted = {key: now["budget"][key] for key in LIMITS if key in now["budget"]}
    return {key: each for key, each in wanted.items() if each != before["budget"].get(key)}


def _drive(
    store: Store, plan: PlannedStudy, study_run: on_ray.StudyRun, take_up: Callable[[], History]
) -> None:
    """Drive a study, watched."""
    resume = f"hpsearch resume {plan.name} --storage {store.display_url}"
    view = LiveView(Look(store, plan.name), quiet=plan.quiet)
    with view, stopped_by_signals(resume) as on_driver:
        study = on_ray.drive(store, study_run, take_up, view.watch, on_driver)
    if study.state is StudyState.INTERRUPTED:
        what = "interrupted; everything is saved"
        raise Interrupted(what, f"continue by running the script again, or with: {resume}")


def _address() -> str | None:
    """The cluster that the environment names; None for this machine."""
    return os.environ.get("RAY_ADDRESS") or None
