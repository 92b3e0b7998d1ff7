"""`tune.run`, and its trials as `ExperimentAnalysis` has them: Ray Tune's older form of a Tuner."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pandas as pd
from ray import tune as of_ray
from ray.tune import RunConfig, TuneConfig, create_scheduler

from hpsearch.errors import UserError
from hpsearch.plugins.ray_tune.adapting import with_resources
from hpsearch.plugins.ray_tune.session import Checkpoint
from hpsearch.plugins.ray_tune.tuner import Result, ResultGrid, Tuner

TUNED = ("metric", "mode", "num_samples", "time_budget_s", "search_alg", "max_concurrent_trials")
RAN = ("name", "storage_path", "storage_filesystem", "stop", "checkpoint_config", "verbose")
REFUSED = {"restore", "export_formats", "local_dir"}


class ExperimentAnalysis(ResultGrid):
    """The trials of a study, by their numbers, as `tune.run` returns them. The best one is that of
    `ResultGrid.get_best_result`, unless a metric or a mode is given."""

    @property
    def trials(self) -> list[Result]:
        """All trials."""
        return list(self)

    @property
    def best_trial(self) -> Result:
        """The best trial."""
        return self.get_best_trial()

    @property
    def best_config(self) -> dict[str, Any]:
        """The best trial's config."""
        return self.get_best_config()

    @property
    def best_result(self) -> dict[str, Any]:
        """The best trial's last metrics."""
        return self.best_trial.metrics

    @property
    def best_checkpoint(self) -> Checkpoint | None:
        """The best trial's checkpoint."""
        return self.best_trial.checkpoint

    @property
    def results_df(self) -> pd.DataFrame:
        """The last report of each trial, by its id."""
        return self.get_dataframe().set_index("trial_id")

    def get_best_trial(
        self, metric: str | None = None, mode: str | None = None, scope: str = "last"
    ) -> Result:
        """The best trial by its last report, or by its best one with the scope ``all``. Raises
        UserError for another scope, or if no trial has reported the metric."""
        if scope == "last":
            return self.get_best_result(metric, mode)
        if scope != "all":
            raise UserError(f"trials cannot be compared by scope={scope!r}", "last or all can be")
        frame = self.dataframe(*self.compared_by(metric, mode))
        return self[int(frame.index[0])]

    def get_best_config(
        self, metric: str | None = None, mode: str | None = None, scope: str = "last"
    ) -> dict[str, Any]:
        """The config of `get_best_trial`."""
        return self.get_best_trial(metric, mode, scope).config

    def get_best_checkpoint(
        self, trial: Result, metric: str | None = None, mode: str | None = None
    ) -> Checkpoint | None:
        """A trial's checkpoint: a study keeps the best one by its own metric."""
        return trial.checkpoint

    def dataframe(self, metric: str | None = None, mode: str | None = None) -> pd.DataFrame:
        """A row for each trial: its last report, or its best one by a metric, best row first."""
        frame = self.get_dataframe()
        if metric is None or mode is None:
            return frame
        is_ascending = mode == "min"
        chosen = {}
        for number, trial in enumerate(self):
            reports = trial.metrics_dataframe
            if metric in reports and reports[metric].notna().any():
                chosen[number] = reports.sort_values(metric, ascending=is_ascending).iloc[0]
        if not chosen:
            raise UserError(f"no trial has reported the metric {metric!r}", "check its name")
        frame.update(pd.DataFrame.from_dict(chosen, orient="index"))
        return frame.sort_values(metric, ascending=is_ascending)


def run(
    run_or_experiment: Any,
    *,
    config: Mapping[str, Any] | None = None,
    resources_per_trial: Mapping[str, float] | None = None,
    scheduler: Any = None,
    checkpoint_freq: int = 0,
    **arguments: Any,
) -> ExperimentAnalysis:
    """Run the study that Ray Tune's arguments of this name describe, or continue it. Raises
    UserError if something cannot be carried over, and as `Tuner.fit`."""
    known = inspect.signature(of_ray.run).parameters.keys() - REFUSED
    unknown = sorted(arguments.keys() - known)
    if unknown:
        what = f"tune.run({unknown[0]}=...) cannot be carried over"
        raise UserError(what, "leave it out; docs/ray-tune.md says what is carried over")
    given = {name: value for name, value in arguments.items() if value is not None}
    tuned = {name: given[name] for name in TUNED if name in given}
    ran = {name: given[name] for name in RAN if name in given}
    if isinstance(scheduler, str):
        scheduler = create_scheduler(scheduler)
    run_config = RunConfig(**ran)
    if checkpoint_freq:
        run_config.checkpoint_config.checkpoint_frequency = checkpoint_freq
    trainable = with_resources(run_or_experiment, resources_per_trial or {})
    tune_config = TuneConfig(scheduler=scheduler, **tuned)
    tuner = Tuner(trainable, param_space=config, tune_config=tune_config, run_config=run_config)
    return tuner.fit(ExperimentAnalysis)
