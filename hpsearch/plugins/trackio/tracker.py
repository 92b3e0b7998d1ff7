"""Trackio: a run for each trial, and one for the study, in a group.

A run has the facts of its trial beside its parameters, as its config. It is opened for each news
and closed again: Trackio has one open run at a time, and only a closed one is surely written.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import trackio
from trackio import deploy, run, utils

from hpsearch.domain.plugins.news import StudyNews, Tracker, TrialNews, named
from hpsearch.plugins.trackio.options import TrackioOptions

for _module in (trackio, deploy, run, utils):
    _module.print = lambda *words, **named: None  # stdout is for results
STUDY = "study"
BEST = "hpsearch/best_value"


class TrackioTracker(Tracker):
    """A project of Trackio."""

    def __init__(self, options: TrackioOptions, base: Path) -> None:
        self._options = options

    @property
    def target(self) -> str:
        return f"{self._options.project} {self._options.space or utils.TRACKIO_DIR}"

    def send_study(self, study: StudyNews) -> None:
        best = {f"best/{name}": value for name, value in study.best_params.items()}
        config = {"study_file": study.record.spec, **named(study.facts, "/"), **best}
        values = {BEST: study.facts["best_value"]} if "best_value" in study.facts else {}
        self._send(study, STUDY, config, [(study.done, values)])

    def send_trial(self, study: StudyNews, news: TrialNews) -> None:
        trial, unit = news.trial, study.unit
        config = {**trial.params, "seed": trial.seed, **named(news.facts, "/")}
        rows = [(each.step, {**each.metrics, unit: each.resource}) for each in news.points]
        self._send(study, news.run, config, rows or [(news.step, {})])

    def _send(
        self,
        study: StudyNews,
        key: str,
        config: dict[str, Any],
        rows: Sequence[tuple[int, Mapping[str, float]]],
    ) -> None:
        opened = trackio.init(
            project=self._options.project,
            name=f"{study.label} {key}",
            group=study.label,
            space_id=self._options.space,
            config=config,
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        for step, metrics in rows:
            opened.log(dict(metrics), step=step)
        trackio.finish()
