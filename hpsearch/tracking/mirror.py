"""From the database to a tracker: whatever was committed and the tracker has not been sent."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from hpsearch.checkpoint_folders import folder_name
from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.ranking.selection import leading
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.tracking.news import Point, StudyNews, Tracker, TrialNews
from hpsearch.tracking.sent import Sent, SentTrial, digest_of

SAVE_S = 5.0
"""A sending that takes longer than this writes down on the way what it has sent."""


class Mirror:
    """Keeps a tracker up to date with one study.

    Args:
        store: The database.
        spec: The study file.
        sent: The record of what the tracker has been sent.
        tracker: The tracker.
        on_progress: Called after each trial that was sent.
    """

    def __init__(
        self,
        store: Store,
        spec: StudySpec,
        sent: Sent,
        tracker: Tracker,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._spec = store, spec
        self._sent, self._tracker = sent, tracker
        self._on_progress = on_progress
        self._history = History(store.find_study(spec.study))
        self._revision = -1
        self._waiting: set[int] = set()
        """Trials that may have news."""
        self._clock = 0
        self._had_ended = False
        self._is_introduced = False
        """Whether the tracker, as it was begun here, has been sent the study."""

    def catch_up(self) -> None:
        """Send what was committed since the last call.

        Raises:
            Exception: What the tracker raises. What was not sent is sent by the next call.
        """
        self._revision = self._store.refresh(self._history, self._revision)
        self._clock, changed = self._history.changed_since(self._clock)
        self._waiting |= set(changed)
        study = self._study_news()
        if study.has_ended and not self._had_ended:
            self._waiting |= {trial.number for trial in self._history.trials}
        self._had_ended = study.has_ended
        digest = digest_of(study.facts)
        if not self._is_introduced or digest != self._sent.study:
            self._tracker.send_study(study)
            self._is_introduced = True
            self._sent.note_study(digest)
        saved_at = time.monotonic()
        try:
            for number in sorted(self._waiting):
                self._send_trial(study, self._history.trials[number])
                self._on_progress()
                if time.monotonic() - saved_at > SAVE_S:
                    self.save()
                    saved_at = time.monotonic()
        finally:
            self.save()

    def save(self) -> None:
        """Write down what was sent and is safe.

        Raises:
            Exception: It cannot be written; each store has errors of its own.
        """
        self._sent.write(self._tracker.unsafe())

    def _send_trial(self, study: StudyNews, trial: Trial) -> None:
        before = self._sent.of(trial.number)
        news = self._trial_news(study, trial, before.until)
        digest = digest_of({**news.facts, "is_over": news.is_over})
        is_news = bool(news.points) or digest != before.digest
        if is_news and self._tracker.wants(news):
            self._tracker.send_trial(study, news)
            until = news.points[-1].resource if news.points else before.until
            self._sent.note(trial.number, SentTrial(until, digest))
        self._waiting.discard(trial.number)

    def _study_news(self) -> StudyNews:
        record, trials = self._history.study, self._history.trials
        found = Counter(trial.state for trial in trials)
        counts = {state.value: found[state] for state in State}
        best = None
        if len(record.directions) == 1:
            best = leading(trials, self._spec.objective.sign)
        uid = record.uid or f"{record.name}-{record.created:.0f}"
        gpu_seconds = sum(trial.gpu_seconds for trial in trials)
        best_value = None if best is None else best.value
        facts = {
            "state": record.state.value,
            "reason": record.reason,
            "gpu_seconds": gpu_seconds,
            "best_trial": None if best is None else best.number,
            "best_value": best_value,
            **{f"trials_{state}": count for state, count in counts.items()},
        }
        return StudyNews(
            uid=uid,
            label=folder_name(record.name, uid),
            name=record.name,
            text=record.spec,
            metric=self._spec.objective.metric,
            unit=self._spec.budget.per_trial.unit.value,
            created=record.created,
            ended=record.ended,
            state=record.state,
            counts=counts,
            gpu_seconds=gpu_seconds,
            best_value=best_value,
            best_params={} if best is None else best.params,
            facts=_known(facts),
        )

    def _trial_news(self, study: StudyNews, trial: Trial, until: float) -> TrialNews:
        reports = [trial.reports[resource] for resource in sorted(trial.reports)]
        points = [self._point(report) for report in reports if report.resource > until]
        value = trial.value
        if value is not None and not math.isfinite(value):
            value = None
        error = None
        if trial.error_kind is not None:
            error = f"{trial.error_kind.value}: {trial.error_text}"
        facts = {
            "state": trial.state.value,
            "value": value,
            "resource": trial.resource,
            "gpu_seconds": trial.gpu_seconds,
            "checkpoint": trial.best_checkpoint or trial.checkpoint,
            "error": error,
            "role": trial.role.value,
            "repeats": trial.repeats if trial.role is Role.CONFIRM else None,
            "continues": trial.continues,
            "seed": trial.seed,
            **{f"value_{i}": each for i, each in enumerate(trial.values or ())},
        }
        return TrialNews(
            number=trial.number,
            state=trial.state,
            params=trial.params,
            points=points,
            step=self._step(reports[-1].resource) if reports else 0,
            value=value,
            gpu_seconds=trial.gpu_seconds,
            started=trial.started,
            ended=trial.ended,
            role=trial.role.value,
            seed=trial.seed,
            is_over=trial.state.terminal or study.has_ended,
            facts=_known(facts),
        )

    def _point(self, report: ReportRecord) -> Point:
        metrics: dict[str, float] = {**report.metrics}
        return Point(self._step(report.resource), report.resource, report.created, metrics)

    def _step(self, resource: float) -> int:
        return round(resource * self._history.study.step_scale)


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
