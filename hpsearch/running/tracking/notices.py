"""Events that are worth a notice: a new best configuration, trouble, and the end of a study.

New bests are gathered, and so are lost workers: of each kind there is at most one notice a minute.
The end and other trouble are always sent at once.
"""

from __future__ import annotations

import enum
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from hpsearch.brain.requests import was_asked_to_stop
from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes
from hpsearch.domain.records import Outcome, StudyRecord, StudyState, Trial
from hpsearch.errors import HpsearchError
from hpsearch.running.tracking.secrets import without_secrets
from hpsearch.search.ranking.selection import leading

GATHER_S = 60.0
"""The time between two notices of one kind, in seconds."""
LOOK_S = 1.0
"""The time between two looks for a new best."""

Notice = Mapping[str, Any]
"""A document that is sent as JSON."""


class Event(enum.StrEnum):
    """The subject of a notice."""

    BEST = "best"
    """Another configuration is ahead."""
    TROUBLE = "trouble"
    """The study gave up, workers were lost, the disk is full, or the driver failed."""
    END = "end"
    """The study has ended, or was interrupted."""


class Notices:
    """Watches a study and sends notices; `deliver` must return at once."""

    def __init__(
        self,
        study: str,
        deliver: Callable[[Notice], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._deliver, self._clock = study, deliver, clock
        self._study: Study | None = None
        """As of the last tick."""
        self._now = 0.0
        """The time of the last tick, by the study's clock."""
        self._best: Trial | None = None
        """The trial that was ahead when that was last looked at."""
        self._may_be_better = False
        self._look_at = 0.0
        self._lost: list[str] = []
        """Why attempts were lost that no notice has named yet."""
        self._send_lost_at = 0.0
        self._waits_for_disk = False

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Take in the commit of a tick."""
        if self._study is None:
            self._study = study
            self._best = self._best_now()  # that of a study that is resumed is not new
        self._now = now
        at = self._clock()
        self._may_be_better = self._may_be_better or bool(changes.trials)
        if self._may_be_better and at >= self._look_at:
            self._may_be_better = False
            is_new = self._send_best()
            self._look_at = at + (GATHER_S if is_new else LOOK_S)
        waits = study.waits_for_disk(now)
        if waits and not self._waits_for_disk:
            self._send(Event.TROUBLE, "cannot write checkpoints: the disk is full")
        self._waits_for_disk = waits
        for attempt in changes.attempts:
            if attempt.outcome is Outcome.LOST:
                self._lost.append(attempt.note or "no reason is known")
        if self._lost and at >= self._send_lost_at:
            self._send_lost()
            self._send_lost_at = at + GATHER_S

    def ended(self, record: StudyRecord) -> None:
        """Take in the orderly end of the driver."""
        if self._lost:
            self._send_lost()
        reason = record.reason or "it was asked to stop"
        is_wanted = was_asked_to_stop(record.reason)
        if record.state is StudyState.FAILED:
            self._send(Event.TROUBLE, f"gave up: {reason}", record.state)
        elif record.state is StudyState.INTERRUPTED:
            event = Event.END if is_wanted else Event.TROUBLE
            why = "" if reason == record.state.value else f": {reason}"
            self._send(event, f"was interrupted{why}", record.state)
        else:
            self._send(Event.END, f"has ended: {reason}{self._best_text()}", record.state)

    def failed(self, error: Exception) -> None:
        """Take in an error that ended the driver."""
        what, _, _ = str(error).partition("\n")
        if not isinstance(error, HpsearchError):
            what = f"{type(error).__name__}: {what}"
        self._send(Event.TROUBLE, f"has no driver any more: {without_secrets(what)}")

    def _send_best(self) -> bool:
        """Send the leading configuration, if it is another one; return whether it is."""
        ahead = self._best_now()
        if ahead is None or (self._best is not None and ahead.number == self._best.number):
            return False
        self._best = ahead
        self._send(Event.BEST, f"has a new best{self._best_text()}")
        return True

    def _send_lost(self) -> None:
        lost, self._lost = self._lost, []
        why, _ = Counter(lost).most_common(1)[0]
        attempts = "1 attempt" if len(lost) == 1 else f"{len(lost)} attempts"
        self._send(Event.TROUBLE, f"lost the workers of {attempts}: {without_secrets(why)}")

    def _send(self, event: Event, what: str, state: StudyState | None = None) -> None:
        text = f"hpsearch: study {self._name} {what}"
        notice = {"event": event.value, "study": self._name, "text": text}
        if state is not None:
            notice["state"] = state.value
        self._deliver({**notice, **self._standing()})

    def _standing(self) -> dict[str, Any]:
        """The standing of the study; empty before its first tick."""
        if self._study is None:
            return {}
        trials, spec, best = self._study.history.trials, self._study.spec, self._best_now()
        spent_s = sum(trial.gpu_seconds for trial in trials)
        leading_trial = best and {
            "trial": best.number,
            "metric": spec.objective.metric,
            "value": best.value,
            "resource": best.resource,
            "unit": spec.budget.per_trial.unit.value,
            "params": best.params,
        }
        return {
            "best": leading_trial,
            "trials": dict(Counter(trial.state.value for trial in trials)),
            "gpu_hours": round(spent_s / 3600, 6),
            "seconds_left": self._study.seconds_left(self._now),
        }

    def _best_text(self) -> str:
        """The best trial as the end of a sentence, if there is one."""
        best = self._best_now()
        if best is None or self._study is None:
            return ""
        params = " ".join(f"{name}={_short(value)}" for name, value in best.params.items())
        value = f"{self._study.spec.objective.metric} {_short(best.value)}"
        return f" - trial {best.number}: {value}, {params}"

    def _best_now(self) -> Trial | None:
        """The best trial; None with several objectives, or before there is one."""
        study = self._study
        if study is None or len(study.spec.objectives) > 1:
            return None
        objective = study.spec.objective
        return leading(study.history.trials, objective.direction, objective.metric)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
