"""From the database to a tracker: what has been committed and the tracker has not been told."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyRecord, StudyState, Trial
from hpsearch.folders import folder_name
from hpsearch.ranking.selection import leading
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.tracking.memory import Memory, Told, digest_of
from hpsearch.tracking.news import Point, StudyNews, Tracker, TrialNews

SAVE_S = 5.0
"""What is sent in a longer time than this is remembered meanwhile."""


class Mirror:
    """Keeps a tracker up to date with one study.

    Args:
        store: The database.
        spec: The study file.
        memory: What the tracker has been told.
        tracker: The tracker.
        on_progress: Called after each trial that was sent.
    """

    def __init__(
        self,
        store: Store,
        spec: StudySpec,
        memory: Memory,
        tracker: Tracker,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._spec = store, spec
        self._memory, self._tracker = memory, tracker
        self._on_progress = on_progress
        self._history = History(store.find_study(spec.study))
        self._revision = -1
        self._waiting: set[int] = set()
        """Trials that may have news."""
        self._clock = 0
        self._is_introduced = False
        """Whether the tracker, as it was begun here, has heard of the study."""

    def catch_up(self) -> None:
        """Send what was committed since the last call.

        Raises:
            Exception: What the tracker raises. What was not sent is sent by the next call.
        """
        before = self._history.study.state
        self._revision = self._store.refresh(self._history, self._revision)
        self._clock, changed = self._history.changed_since(self._clock)
        self._waiting |= set(changed)
        if self._history.study.state is not before and self._has_ended:
            self._waiting |= {trial.number for trial in self._history.trials}
        study = self._study_news()
        self._send_study(study)
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
        """Remember what was sent and is safe.

        Raises:
            Exception: It cannot be written; each store has errors of its own.
        """
        self._memory.write(self._tracker.unsafe())

    @property
    def _has_ended(self) -> bool:
        return self._history.study.state in (StudyState.FINISHED, StudyState.FAILED)

    def _send_study(self, study: StudyNews) -> None:
        digest = digest_of(study.facts)
        if self._is_introduced and digest == self._memory.study:
            return
        self._tracker.send_study(study)
        self._is_introduced = True
        self._memory.note_study(digest)

    def _send_trial(self, study: StudyNews, trial: Trial) -> None:
        told = self._memory.of(trial.number)
        news = self._trial_news(trial, told)
        digest = digest_of({**news.facts, "is_over": news.is_over})
        is_news = bool(news.points) or digest != told.digest
        if is_news and self._tracker.wants(news):
            self._tracker.send_trial(study, news)
            until = news.points[-1].resource if news.points else told.until
            self._memory.note(trial.number, Told(until, digest))
        self._waiting.discard(trial.number)

    def _study_news(self) -> StudyNews:
        record, trials = self._history.study, self._history.trials
        counts = Counter(trial.state for trial in trials)
        best = None
        if len(record.directions) == 1:
            best = leading(trials, self._spec.objective.sign)
        return StudyNews(
            uid=uid_of(record),
            label=folder_name(record.name, uid_of(record)),
            name=record.name,
            text=record.spec,
            metric=self._spec.objective.metric,
            unit=self._spec.budget.per_trial.unit.value,
            created=record.created,
            ended=record.ended,
            state=record.state,
            reason=record.reason,
            counts={state.value: counts[state] for state in State},
            gpu_seconds=sum(trial.gpu_seconds for trial in trials),
            best=None if best is None else best.number,
            best_value=None if best is None else best.value,
            best_params={} if best is None else best.params,
        )

    def _trial_news(self, trial: Trial, told: Told) -> TrialNews:
        reports = [trial.reports[resource] for resource in sorted(trial.reports)]
        points = [self._point(report) for report in reports if report.resource > told.until]
        error = None
        if trial.error_kind is not None:
            error = f"{trial.error_kind.value}: {trial.error_text}"
        return TrialNews(
            number=trial.number,
            state=trial.state,
            params=trial.params,
            points=points,
            step=self._step(reports[-1].resource) if reports else 0,
            value=_finite(trial.value),
            values=trial.values,
            resource=trial.resource,
            checkpoint=trial.best_checkpoint or trial.checkpoint,
            gpu_seconds=trial.gpu_seconds,
            started=trial.started,
            ended=trial.ended,
            error=error,
            role=trial.role.value,
            repeats=trial.repeats if trial.role is Role.CONFIRM else None,
            seed=trial.seed,
            is_over=trial.state.terminal or self._has_ended,
            continues=trial.continues,
        )

    def _point(self, report: ReportRecord) -> Point:
        metrics: dict[str, float] = {}
        metrics.update(report.metrics)
        return Point(self._step(report.resource), report.resource, report.created, metrics)

    def _step(self, resource: float) -> int:
        return round(resource * self._history.study.step_scale)


def uid_of(record: StudyRecord) -> str:
    """What tells a study from all others."""
    return record.uid or f"{record.name}-{record.created:.0f}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
