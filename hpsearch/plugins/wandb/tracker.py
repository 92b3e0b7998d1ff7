"""Weights & Biases: a run for each trial, and one for the study, in a group.

The id of a run is made of the study's uid and the trial's number, so that a trial which continues
continues its run. Online, runs are open while their trials train. Offline, a run cannot be
continued without a step by hand, so each is written once, when nothing is expected to follow.
"""

import os
from pathlib import Path
from typing import Any

import wandb

from hpsearch.domain.lifecycle import State
from hpsearch.domain.plugins.news import StudyNews, Tracker, TrialNews, named
from hpsearch.domain.records import StudyState
from hpsearch.plugins.wandb.options import WandbOptions

STUDY = "study"  # ends the id of the study's own run
SERVICE = "WANDB_SERVICE"  # the variable with the address of wandb's own process
INIT_S = 60.0  # seconds that wandb may take to begin a run


class WandbTracker(Tracker):
    """A project of Weights & Biases."""

    def __init__(self, options: WandbOptions, base: Path) -> None:
        self._options = options
        self._folder = base / (options.folder or "")
        mode = options.mode or os.environ.get("WANDB_MODE") or "online"
        self._mode: Any = mode
        self._is_offline = mode == "offline"
        self._open: dict[str, Any] = {}
        """Runs that are open, by the end of their ids."""
        self._folder.mkdir(parents=True, exist_ok=True)

    @property
    def target(self) -> str:
        """The place of the runs, in words."""
        options = self._options
        return f"{options.entity or ''}/{options.project} {self._mode} {options.folder or ''}"

    def wants(self, news: TrialNews) -> bool:
        """Online every trial; offline those that nothing is expected to follow for."""
        return news.is_over or not self._is_offline

    def send_study(self, study: StudyNews) -> None:
        """Update the study's own run."""
        if self._is_offline and not study.has_ended:
            return
        record = study.record
        run = self._run(study, STUDY, record.name, {"study_file": record.spec})
        run.summary.update(named(study.facts, "/"))
        run.summary.update({f"best/{name}": value for name, value in study.best_params.items()})
        if study.has_ended:
            self._finish(STUDY, failed=record.state is StudyState.FAILED)

    def send_trial(self, study: StudyNews, news: TrialNews) -> None:
        """Log what is new of a trial, and end its run unless it trains."""
        trial, key = news.trial, news.run
        config = {**trial.params, "seed": trial.seed}
        name = f"{study.record.name} {key}"
        run = self._run(study, key, name, config, trial.role.value)
        for point in news.points:
            run.log({**point.metrics, study.unit: point.resource}, step=point.step)
        run.summary.update(named(news.facts, "/"))
        if trial.state is not State.RUNNING:
            self._finish(key, failed=trial.state is State.FAILED)

    def close(self) -> None:
        """End all runs."""
        for key in list(self._open):
            self._finish(key, failed=False)

    def _run(
        self, study: StudyNews, key: str, name: str, config: dict[str, Any], role: str = STUDY
    ) -> Any:
        if key not in self._open:
            run = wandb.init(
                project=self._options.project,
                entity=self._options.entity,
                id=f"{study.uid[:12]}-{key}",
                name=name,
                group=study.label,
                job_type=role,
                config=config,
                dir=str(self._folder),
                mode=self._mode,
                resume=None if self._is_offline else "allow",
                reinit="create_new",
                settings=_settings(),
            )
            os.environ.pop(SERVICE, None)  # else programs of this process would use it, too
            run.define_metric(study.unit)
            run.define_metric("*", step_metric=study.unit)
            self._open[key] = run
        return self._open[key]

    def _finish(self, key: str, *, failed: bool) -> None:
        self._open.pop(key).finish(exit_code=1 if failed else 0)


def _settings() -> wandb.Settings:
    """Nothing of this process belongs to a run: not its output, its machine or its folder."""
    return wandb.Settings(
        console="off",
        silent=True,
        disable_code=True,
        disable_git=True,
        save_code=False,
        init_timeout=INIT_S,
        x_disable_stats=True,
        x_disable_meta=True,
    )
