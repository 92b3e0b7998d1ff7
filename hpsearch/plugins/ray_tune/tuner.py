"""A Tuner: runs the study that it describes, takes it up again where it exists already, and returns
its trials as Ray Tune's users read them."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd
import ray
import yaml

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, StudyState, Trial
from hpsearch.errors import UserError
from hpsearch.plugins.ray_tune.adapting import OURS, config_of
from hpsearch.plugins.ray_tune.plan import ITERATION, PlannedStudy, plan_of
from hpsearch.plugins.ray_tune.session import FOLDER, Checkpoint, flat
from hpsearch.running import loading
from hpsearch.running.checkpoint_folders import folder_of, folder_of_new
from hpsearch.running.creation.study import create_study, spec_of
from hpsearch.running.study_run import on_ray
from hpsearch.running.study_run.ends import interruption_of
from hpsearch.running.study_run.ownership import refuse_if_held
from hpsearch.running.study_run.signals import stopped_by_signals
from hpsearch.search.ranking.selection import rank
from hpsearch.store.connecting.hints import suggesting_for
from hpsearch.store.store import Store
from hpsearch.store.study_texts import content_of
from hpsearch.study_file.reading import parse
from hpsearch.study_file.text import with_budget
from hpsearch.views.live import LiveView, StudyPanel
from trials.checkpoints import folders
from trials.script import end_import

if TYPE_CHECKING:
    from ray.tune import RunConfig, TuneConfig

LIMITS = ("trials", "wall_clock")  # limits that another run of a script may raise
SAME = ("task", "space", "objective")
"""Sections of a study file that another run of a script may not change."""


@dataclass
class Result:
    """A trial."""

    config: dict[str, Any]
    """Its parameters and the constants, nested as the trainable was given them."""
    metrics: dict[str, Any]
    """Of its latest report, with `training_iteration`, `time_total_s` (over all its attempts),
    `trial_id` and `config`."""
    checkpoint: Checkpoint | None
    """The best one, which is all that an ended trial keeps; of a paused trial, the one it continues
    from; None if it saved none."""
    path: str  # its folder, or its URL where checkpoints go to a store
    error: Exception | None  # why it failed; None if it did not
    state: str  # complete, pruned, paused, failed, queued or running
    metrics_dataframe: pd.DataFrame = field(repr=False)  # a row for each report
    number: int  # the trial's, in the study

    @property
    def last_result(self) -> dict[str, Any]:
        """The metrics, as an `ExperimentAnalysis` of Ray Tune calls them."""
        return self.metrics

    @property
    def trial_id(self) -> str:
        """The number, as Ray Tune has it: five digits."""
        return str(self.metrics["trial_id"])


class ResultGrid:
    """The trials of a study, by their numbers."""

    def __init__(self, storage: str, name: str, experiment_path: str) -> None:
        self.experiment_path = experiment_path
        with closing(Store.open(storage, create=False)) as store:
            self._see_trials = store.command(f"trials {name}")
            history = store.load(name)
        content = content_of(history.study.spec)
        self._objective: Mapping[str, str] = content["objective"]
        args = content["task"].get("args") or {}
        self._results = [_result(history.study, args, trial) for trial in history.trials]
        ranked = rank(history.trials, self._objective["direction"])
        self._best = self._results[ranked[0].trial.number] if ranked else None

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, place: int) -> Result:
        return self._results[place]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    @property
    def errors(self) -> list[Exception]:
        """Why trials failed."""
        return [result.error for result in self if result.error is not None]

    @property
    def num_errors(self) -> int:
        """The number of failed trials."""
        return len(self.errors)

    def get_best_result(self, metric: str | None = None, mode: str | None = None) -> Result:
        """The best trial. Without arguments, it is the one that the study hands out, by what is
        expected of its trials in full. With any, trials are compared by their last reports, as in
        Ray Tune. Raises UserError if no trial has reported the metric."""
        if metric is mode is None:
            if self._best is None or not self._best.metrics_dataframe.size:
                raise UserError("no trial has reported", f"see what happened: {self._see_trials}")
            return self._best
        metric, mode = self.compared_by(metric, mode)
        best = max if mode == "max" else min
        having = [result for result in self if math.isfinite(result.metrics.get(metric, math.nan))]
        if not having:
            raise UserError(f"no trial has reported the metric {metric!r}", "check its name")
        return best(having, key=lambda result: result.metrics[metric])

    def compared_by(self, metric: str | None, mode: str | None) -> tuple[str, str]:
        """A metric and a mode, those of the study where they are None."""
        return metric or self._objective["metric"], mode or self._objective["direction"][:3]

    def get_dataframe(self) -> pd.DataFrame:
        """A row for each trial: its last metrics, `trial_id`, and its config as ``config/NAME``."""
        rows = []
        for result in self:
            metrics = {name: value for name, value in result.metrics.items() if name != "config"}
            config = {f"config/{name}": value for name, value in flat(result.config, "/").items()}
            rows.append({**metrics, "logdir": result.path, **config})
        return pd.DataFrame(rows)


def _result(study: StudyRecord, args: Mapping[str, Any], trial: Trial) -> Result:
    tuples = frozenset(args.get(OURS, {}).get("tuples", ()))
    config = config_of({**args, **trial.params}, tuples)
    curve = []
    for _, report in sorted(trial.reports.items()):
        of_tune = {ITERATION: int(report.resource), "time_total_s": report.elapsed}
        curve.append({**report.metrics, **of_tune})
    latest: dict[str, Any] = curve[-1] if curve else {}
    saved = trial.best_checkpoint or trial.checkpoint
    if trial.state is State.PAUSED:
        saved = trial.checkpoint or saved
    failed = trial.state is State.FAILED
    return Result(
        config=config,
        metrics={**latest, "trial_id": f"{trial.number:05d}", "config": config},
        checkpoint=None if saved is None else Checkpoint(folders.inside(saved, FOLDER)),
        path=str(folders.inside(study.checkpoints or "", folders.trial_folder(trial.number))),
        error=RuntimeError(trial.error_text or str(trial.error_kind)) if failed else None,
        state=trial.state.value,
        metrics_dataframe=pd.DataFrame(curve),
        number=trial.number,
    )


Grid = TypeVar("Grid", bound=ResultGrid)


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

    def fit(self, kind: type[Grid] = ResultGrid) -> Grid:  # type: ignore[assignment]
        """Run the study, or continue it where it exists already, and return its trials. Raises
        Interrupted with everything saved, UserError if it exists with another space, task or
        objective, StudyHeld if another driver runs it, and Unreachable."""
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
        with suggesting_for(plan.storage), closing(Store.open(plan.storage)) as store:
            if not plan.quiet:
                place = f"study {plan.name} in {store.display_url}"
                print(place, file=sys.stderr)  # noqa: T201 - beside what the live view prints
            if plan.name in store.study_names():
                _continue(store, plan)
            else:
                _begin(store, plan)
        return kind(plan.storage, plan.name, plan.folder)

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
    store: Store,
    plan: PlannedStudy,
    study_run: on_ray.StudyRun,
    open_history: Callable[[], History],
) -> None:
    resume = store.command(f"resume {plan.name}")
    view = LiveView(StudyPanel(store, plan.name), quiet=plan.quiet)
    with view, stopped_by_signals(resume) as on_driver:
        study = on_ray.drive(store, study_run, open_history, view.watch, on_driver)
    if study.state is StudyState.INTERRUPTED:
        raise interruption_of(study, f"running the script again, or {resume}")


def _address() -> str | None:
    return os.environ.get("RAY_ADDRESS") or None
