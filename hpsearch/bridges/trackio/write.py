"""Trackio: a run for each trial, and one for the study, in a group.

A process has one run of Trackio at a time, so a run is taken up for what is new of its trial and
ended again; that takes about ten milliseconds. A run's config has what is known of the trial now.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpsearch.study_file.trackers import TrackioOptions
from hpsearch.tracking.news import StudyNews, Tracker, TrialNews, named

_FAILURE = re.compile(r"could not|failed|skipped", re.IGNORECASE)
"""In a warning of Trackio's: something was not logged."""


class TrackioTracker(Tracker):
    """A project of Trackio."""

    interval_s = 5.0

    def __init__(self, options: TrackioOptions) -> None:
        if options.folder is not None:  # Trackio reads it once, when it is imported
            os.environ["TRACKIO_DIR"] = str(Path(options.folder).resolve())
        import trackio

        self._trackio = trackio
        self._options = options
        self._folder = os.environ.get("TRACKIO_DIR", "")

    @property
    def target(self) -> str:
        """Where the runs are."""
        options = self._options
        return f"{options.space or self._folder} {options.project or ''}"

    def send_study(self, study: StudyNews) -> None:
        """Log the best value so far, by the number of trials that have ended."""
        config = {**study.facts, "study_file": study.record.spec}
        with self._run(study, "study", config) as run:
            run.log(named(study.facts, "/", "best_value", "gpu_seconds"), step=study.done)

    def send_trial(self, study: StudyNews, news: TrialNews) -> None:
        """Log what is new of a trial."""
        trial = news.trial
        config = {**trial.params, **named(news.facts, "/")}
        with self._run(study, str(trial.number), config) as run:
            for point in news.points:
                run.log({**point.metrics, study.unit: point.resource}, step=point.step)
            if not news.points or news.is_over:
                run.log(named(news.facts, "/", "value", "gpu_seconds"), step=news.step)

    @contextmanager
    def _run(self, study: StudyNews, key: str, config: Mapping[str, Any]) -> Iterator[Any]:
        """A run to log to."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            run = self._trackio.init(
                project=self._options.project or study.record.name,
                name=f"{study.label}-{key}",
                group=study.label,
                space_id=self._options.space,
                config=dict(config),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
            yield run
            run.finish()
        for each in warned:
            if _FAILURE.search(str(each.message)):
                raise RuntimeError(str(each.message))


open_tracker = TrackioTracker
