"""The return value of `Tuner.fit`: the trials of a study as Ray Tune's users read them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from hpsearch.adapters.ray_tune.configs import OURS, config_of, flat
from hpsearch.adapters.ray_tune.session import FOLDER, Checkpoint
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.errors import UserError
from hpsearch.ranking.selection import rank
from hpsearch.store.store import Store
from hpsearch.store.study_texts import content_of
from trials.checkpoints import folders

ITERATION = "training_iteration"


@dataclass
class Result:
    """A trial.

    Attributes:
        config: Its parameters and the constants, nested as the trainable was given them.
        metrics: Of its latest report, with `training_iteration`, `time_total_s` (over all its
            attempts), `trial_id` and `config`.
        checkpoint: The best one, which is all that an ended trial keeps; of a paused trial, the one
            it continues from; None if it saved none.
        path: Its folder, or its URL where checkpoints go to a store.
        error: Why it failed; None if it did not.
        state: complete, pruned, paused, failed, queued or running.
        metrics_dataframe: A row for each report.
        number: The trial's, in the study.
    """

    config: dict[str, Any]
    metrics: dict[str, Any]
    checkpoint: Checkpoint | None
    path: str
    error: Exception | None
    state: str
    metrics_dataframe: pd.DataFrame = field(repr=False)
    number: int


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
        """The best trial.

        Without arguments, it is the one that the study hands out, by what is expected of its trials
        in full. With any, trials are compared by their last reports, as in Ray Tune.

        Args:
            metric: The name of a metric; None for the study's.
            mode: ``min`` or ``max``; None for the study's.

        Raises:
            UserError: No trial has reported the metric.
        """
        if metric is mode is None:
            if self._best is None or not self._best.metrics_dataframe.size:
                raise UserError("no trial has reported", f"see what happened: {self._see_trials}")
            return self._best
        metric = metric or self._objective["metric"]
        best = max if (mode or self._objective["direction"])[:3] == "max" else min
        having = [result for result in self if math.isfinite(result.metrics.get(metric, math.nan))]
        if not having:
            raise UserError(f"no trial has reported the metric {metric!r}", "check its name")
        return best(having, key=lambda result: result.metrics[metric])

    def get_dataframe(self) -> pd.DataFrame:
        """A row for each trial: the metrics of its last report, `trial_id`, and its config as
        ``config/NAME``."""
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
