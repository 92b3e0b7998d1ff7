"""From the database to a tracker: everything committed that the tracker has not been sent."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from hpsearch.domain.lifecycle import State
from hpsearch.domain.plugins.news import Point, StudyNews, Tracker, TrialNews
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.running.checkpoint_folders import TRACKING, folder_name
from hpsearch.running.tracking.secrets import without_passwords
from hpsearch.store.reading.queries import study_of_id
from hpsearch.store.reading.status import study_summary
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from trials.checkpoints.folders import folder_at, inside


class SentTrial(NamedTuple):
    """The part of a trial that a tracker has been sent."""

    until: float = 0.0  # the resource of the last point; 0 before the first
    digest: str = ""  # the digest of the facts; empty before the first
    retried: int = 0  # the trial's `retried`: what was sent before it began again is another run's


class Sent:
    """The record of what one tracker was sent of one study, in a file beside its checkpoints; one
    of another `target` does not count, and `again` forgets it. It is written after a sending, so
    that one that is killed sends that part again."""

    def __init__(self, folder: str, tracker: str, target: str, *, again: bool = False) -> None:
        self._folder = folder_at(inside(folder, TRACKING))
        self._file = f"{tracker}.json"
        self._target = without_passwords(target)
        self.study = ""  # the digest of the study's facts
        self.trials: dict[int, SentTrial] = {}
        written = json.loads(self._folder.text(self._file) or "{}")
        if written.get("target") == self._target and not again:
            self.study = written["study"]
            self.trials = {int(key): SentTrial(*sent) for key, sent in written["trials"].items()}

    def of(self, number: int) -> SentTrial:
        """The part of a trial that was sent."""
        return self.trials.get(number, SentTrial())

    def write(self) -> None:
        """Write the file. Raises what the store of the folder raises."""
        content = {"target": self._target, "study": self.study, "trials": self.trials}
        self._folder.write(self._file, json.dumps(content))


class Mirror:
    """Keeps a tracker up to date with one study."""

    def __init__(self, store: Store, spec: StudySpec, sent: Sent, tracker: Tracker) -> None:
        self._store, self._spec = store, spec
        self._sent, self._tracker = sent, tracker
        self._record = store.find_study(spec.study)
        self._revision = -1  # that of the study when all before it had been sent
        self._had_ended = False
        self._is_introduced = False
        """True if the tracker, as it was begun here, has been sent the study."""

    def catch_up(self) -> None:
        """Send what was committed since. Raises what the tracker raises; the next call goes on."""
        self._record = self._store.find_study(self._spec.study)
        revision = self._store.revision(self._record.id)
        study = self._study_news()
        if study.has_ended and not self._had_ended:
            self._revision = -1
        self._had_ended = study.has_ended
        digest = _digest_of(study.facts)
        is_news = revision != self._revision or digest != self._sent.study
        if not self._is_introduced or digest != self._sent.study:
            self._tracker.send_study(study)
            self._is_introduced = True
            self._sent.study = digest
        try:
            for trial in self._store.each_trial(self._record.id, self._revision):
                self._send_trial(study, trial)
            self._revision = revision
        finally:
            if is_news:
                self._sent.write()

    def _send_trial(self, study: StudyNews, trial: Trial) -> None:
        before = self._sent.of(trial.number)
        if before.retried != trial.retried:
            before = SentTrial(retried=trial.retried)
        news = self._trial_news(study, trial, before.until)
        digest = _digest_of({**news.facts, "is_over": news.is_over})
        is_news = bool(news.points) or digest != before.digest
        if is_news and self._tracker.wants(news):
            self._tracker.send_trial(study, news)
            until = news.points[-1].resource if news.points else before.until
            self._sent.trials[trial.number] = SentTrial(until, digest, trial.retried)

    def _study_news(self) -> StudyNews:
        record = self._record
        with self._store.reading() as connection:
            summary = study_summary(connection, study_of_id(connection, record.id))
        best = None if summary.best is None else summary.best.trial
        uid = record.uid or f"{record.name}-{record.created:.0f}"
        facts = {
            "state": record.state.value,
            "reason": record.reason,
            "gpu_seconds": summary.gpu_seconds,
            "best_trial": None if best is None else best.number,
            "best_value": None if best is None else best.value,
            "best_value_at": None if best is None else best.seen_at,
            **{f"trials_{state.value}": summary.trials.get(state, 0) for state in State},
        }
        return StudyNews(
            record,
            uid,
            folder_name(record.name, uid),
            self._spec.objective.metric,
            self._spec.budget.per_trial.unit.value,
            summary.ended,
            {} if best is None else best.params,
            _known(facts),
        )

    def _trial_news(self, study: StudyNews, trial: Trial, until: float) -> TrialNews:
        reports = [trial.reports[resource] for resource in sorted(trial.reports)]
        points = [self._point(report) for report in reports if report.resource > until]
        value, error = trial.value, None
        if trial.error_kind is not None:
            error = f"{trial.error_kind.value}: {trial.error_text}"
        facts = {
            "state": trial.state.value,
            "value": None if value is None or not math.isfinite(value) else value,
            "value_at": trial.seen_at,
            "last_value": trial.last,
            "resource": trial.resource,
            "gpu_seconds": trial.gpu_seconds,
            "checkpoint": trial.best_checkpoint or trial.checkpoint,
            "error": error,
            "role": trial.role.value,
            "repeats": trial.repeats,
            "seed": trial.seed,
            **{f"value_{i}": each for i, each in enumerate(trial.values or ())},
        }
        step = self._step(reports[-1].resource) if reports else 0
        is_over = trial.state.terminal or study.has_ended
        return TrialNews(trial, points, step, is_over, _known(facts))

    def _point(self, report: ReportRecord) -> Point:
        metrics: dict[str, float] = {**report.metrics}
        return Point(self._step(report.resource), report.resource, report.created, metrics)

    def _step(self, resource: float) -> int:
        return round(resource * self._record.step_scale)


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _digest_of(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
