"""Studies whose trackers are sent what they committed, and trackers that only write down."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpsearch.domain.history import History
from hpsearch.domain.plugins.news import StudyNews, Tracker, TrialNews
from hpsearch.running.tracking.mirror import Mirror, Sent
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from support.studies.driven import drive
from support.studies.small import Bowl, spec_with

Wants = Callable[[TrialNews], bool]


@dataclass
class Notebook(Tracker):
    """A tracker that writes down what it is sent.

    Args:
        fails_at: The number of a trial that it cannot take, if any.
        wanted: Which trials it takes.
    """

    fails_at: int | None = None
    wanted: Wants = lambda trial: True
    studies: list[StudyNews] = field(default_factory=list)
    trials: list[TrialNews] = field(default_factory=list)

    def send_study(self, study: StudyNews) -> None:
        self.studies.append(study)

    def send_trial(self, study: StudyNews, news: TrialNews) -> None:
        if news.trial.number == self.fails_at:
            raise ConnectionError("no network")
        self.trials.append(news)

    def wants(self, news: TrialNews) -> bool:
        return self.wanted(news)

    @property
    def points(self) -> dict[int, list[float]]:
        """The resources of all points, by the number of their trial, in the order they came."""
        points: dict[int, list[float]] = {}
        for news in self.trials:
            resources = [point.resource for point in news.points]
            points.setdefault(news.trial.number, []).extend(resources)
        return points

    @property
    def last(self) -> dict[int, TrialNews]:
        """The last news of each trial."""
        return {news.trial.number: news for news in self.trials}


def tracked(url: str, **changes: Any) -> StudySpec:
    """A study that is interrupted after some of its reports."""
    spec = spec_with(study="tracked", **changes)
    drive(url, spec, Bowl(diverges=0.6), workers=2, stop_after=12)
    return spec


def finish(url: str, spec: StudySpec) -> None:
    """Drive it to its end."""
    drive(url, spec, Bowl(diverges=0.6), workers=2, resume=True)


def send(url: str, spec: StudySpec, folder: Path, notebook: Notebook) -> None:
    """Send what is new, as a sender does that was started afresh."""
    with closing(Store.open(url)) as store:
        sent = Sent(str(folder), "notebook", "here")
        Mirror(store, spec, sent, notebook).catch_up()


def recorded(url: str, spec: StudySpec) -> History:
    """The study as the database has it."""
    with closing(Store.open(url)) as store:
        return store.load(spec.study)


def points_of(history: History) -> dict[int, list[float]]:
    """The resources of all reports, by the number of their trial."""
    return {trial.number: sorted(trial.reports) for trial in history.trials}
