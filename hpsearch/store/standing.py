"""Where studies stand: what `ls` and `status` tell, read without loading a trial that is not shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from hpsearch.lifecycle import State
from hpsearch.records import StudyState
from hpsearch.selection import Ranked
from hpsearch.store import codec
from hpsearch.store.queries import StudyHead, TrialRow, best_trials, study_heads
from hpsearch.store.schema import attempts, trials


@dataclass(frozen=True, slots=True)
class StudySummary:
    """A study in a line."""

    head: StudyHead
    driver: str | None
    """Who holds a live lease on it."""
    trials: Mapping[State, int]
    """How many, by state; states that no trial is in are missing."""
    gpu_seconds: float
    best: Ranked[TrialRow] | None

    @property
    def state(self) -> str:
        """Its state for people: what was running when its driver died is told as such."""
        if self.head.state is StudyState.RUNNING and self.driver is None:
            return "abandoned"
        return self.head.state.value


@dataclass(frozen=True, slots=True)
class Limit:
    """A line of the budget."""

    name: str
    """trials, gpu_seconds, wall_clock_seconds or cost."""
    used: float
    most: float | None
    """None where the study sets no such limit."""


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """What a worker is doing."""

    trial: int
    attempt: int
    worker: str
    node: str | None
    device: str | None
    started: float
    resource: float
    value: float | None


@dataclass(frozen=True, slots=True)
class Failures:
    """Trials that failed the same way, with the latest of them as the example."""

    kind: str
    count: int
    trial: int
    text: str | None


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """Where one study stands."""

    summary: StudySummary
    budget: list[Limit]
    reserved_gpu_seconds: float
    """Held back for the attempts that are running."""
    trials_per_hour: float | None
    """Trials that ended, over the hours that drivers worked on the study; None before the first has."""
    running: list[RunningAttempt]
    failures: list[Failures]


def list_studies(connection: Connection, now: float) -> list[StudySummary]:
    """All studies, the newest first; `now` tells live leases from old ones."""
    return [_summary(connection, head, now) for head in study_heads(connection)]


def study_status(connection: Connection, study: StudyHead, now: float) -> StudyStatus:
    """Where a study stands; `now` tells a live lease from an old one."""
    summary = _summary(connection, study, now)
    reserved = connection.scalar(
        select(func.sum(attempts.c.reserved_gpu_seconds)).where(
            attempts.c.study_id == study.id, attempts.c.outcome.is_(None)
        )
    )
    ended = sum(n for state, n in summary.trials.items() if state.terminal)
    hours = study.active_seconds / 3600
    return StudyStatus(
        summary=summary,
        budget=_budget(connection, summary, now),
        reserved_gpu_seconds=reserved or 0.0,
        trials_per_hour=ended / hours if ended and hours > 0 else None,
        running=_running(connection, study),
        failures=_failures(connection, study),
    )


def _summary(connection: Connection, head: StudyHead, now: float) -> StudySummary:
    rows = connection.execute(
        select(trials.c.state, func.count(), func.sum(trials.c.gpu_seconds))
        .where(trials.c.study_id == head.id)
        .group_by(trials.c.state)
    ).all()
    return StudySummary(
        head=head,
        driver=head.driver(now),
        trials={codec.member(State, state): n for state, n, _ in rows},
        gpu_seconds=sum(seconds or 0.0 for _, _, seconds in rows),
        best=next(iter(best_trials(connection, head, 1)), None) if head.has_best else None,
    )


def _budget(connection: Connection, summary: StudySummary, now: float) -> list[Limit]:
    """What is used of the budget that the study file gives, and GPU time in any case."""
    budget = summary.head.budget
    gpu_hours = None if budget is None else budget.gpu_hours
    searched = connection.scalar(
        select(func.count()).where(trials.c.study_id == summary.head.id, trials.c.role != "confirm")
    )
    limits = [
        Limit("trials", searched or 0, None if budget is None else budget.trials),
        Limit("gpu_seconds", summary.gpu_seconds, None if gpu_hours is None else gpu_hours * 3600),
        Limit("wall_clock_seconds", summary.head.active_seconds, None if budget is None else budget.wall_clock_s),
    ]
    if budget is not None and budget.cost_per_gpu_hour is not None:
        spent = connection.scalar(select(func.sum(trials.c.cost)).where(trials.c.study_id == summary.head.id))
        limits.append(Limit("cost", spent or 0.0, budget.cost))
    return limits


def _running(connection: Connection, study: StudyHead) -> list[RunningAttempt]:
    live = (
        select(attempts, trials.c.resource, trials.c.value)
        .join_from(attempts, trials, (attempts.c.study_id == trials.c.study_id) & (attempts.c.trial == trials.c.number))
        .where(attempts.c.study_id == study.id, trials.c.state == State.RUNNING.value, attempts.c.outcome.is_(None))
        .order_by(attempts.c.worker, attempts.c.trial)
    )
    return [
        RunningAttempt(r.trial, r.number, r.worker, r.node, r.device, r.started, r.resource, r.value)
        for r in connection.execute(live)
    ]


def _failures(connection: Connection, study: StudyHead) -> list[Failures]:
    failed = (trials.c.study_id == study.id, trials.c.state == State.FAILED.value)
    rows = connection.execute(select(trials.c.number, trials.c.error_kind).where(*failed).order_by(trials.c.number))
    latest: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for number, kind in rows:
        counts[kind or "error"] += 1
        latest[kind or "error"] = number
    examples = select(trials.c.number, trials.c.error_text).where(*failed, trials.c.number.in_(latest.values()))
    text_of = {row.number: row.error_text for row in connection.execute(examples)}
    return [Failures(kind, n, latest[kind], text_of[latest[kind]]) for kind, n in counts.most_common()]
