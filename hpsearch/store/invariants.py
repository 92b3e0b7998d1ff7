"""What must always be true of a database, and the queries that find where it is not.

For `hpsearch db check`, and for tests that kill things. Each check is one query over all studies, or one of them, and
returns the trials it does not hold for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, case, func, or_, select

from hpsearch.lifecycle import State
from hpsearch.records import Outcome
from hpsearch.store.queries import StudyHead
from hpsearch.store.schema import attempts, reports, studies, trials

SAME_SECONDS = 1e-6
"""Relative error allowed between a sum made in Python and one made by the database."""

LAST_OUTCOMES: dict[State, frozenset[Outcome]] = {
    State.QUEUED: frozenset({Outcome.LOST, Outcome.INTERRUPTED}),
    State.PAUSED: frozenset({Outcome.PAUSED}),
    State.COMPLETE: frozenset({Outcome.COMPLETE}),
    # A trial that waited, at a rung or for a slot, is pruned where its study ends.
    State.PRUNED: frozenset({Outcome.PRUNED, Outcome.PAUSED, Outcome.LOST, Outcome.INTERRUPTED}),
    State.FAILED: frozenset({Outcome.FAILED, Outcome.LOST}),
}
"""How the last attempt of a trial that does not run may have ended."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something in the database that must not be."""

    study: str
    trial: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.study}" + (f", trial {self.trial}" if self.trial is not None else "") + f": {self.what}"


def violations(connection: Connection, study: StudyHead | None = None) -> list[Violation]:
    """Everything that is wrong with one study, or with all of them."""
    only = None if study is None else studies.c.id == study.id
    return [violation for check in CHECKS for violation in check(connection, only)]


Which = ColumnElement[bool] | None
"""Which studies to check; None for all."""


def numbers_have_no_gaps(connection: Connection, which: Which) -> Iterator[Violation]:
    """Trials are numbered from 0 (no number stands twice: it is their key)."""
    counted = (
        select(studies.c.name, func.count(), func.min(trials.c.number), func.max(trials.c.number))
        .join_from(studies, trials, trials.c.study_id == studies.c.id)
        .group_by(studies.c.id, studies.c.name)
        .having(or_(func.min(trials.c.number) != 0, func.max(trials.c.number) != func.count() - 1))
    )
    for name, n, low, high in connection.execute(_of(counted, which)):
        yield Violation(name, None, f"{n} trials have numbers from {low} to {high}: some are missing")


def attempts_have_no_gaps(connection: Connection, which: Which) -> Iterator[Violation]:
    """The attempts of a trial are numbered from 1."""
    n, low, high = func.count(), func.min(attempts.c.number), func.max(attempts.c.number)
    counted = _by_trial(n, low, high).having(or_(low != 1, high != n))
    for name, trial, count, first, last in connection.execute(_of(counted, which)):
        yield Violation(name, trial, f"{count} attempts have numbers from {first} to {last}: some are missing")


def one_attempt_lives(connection: Connection, which: Which) -> Iterator[Violation]:
    """A running trial has one live attempt (none where it was made by hand), any other trial has none."""
    live = func.sum(case((attempts.c.outcome.is_(None), 1), else_=0))
    is_running = trials.c.state == State.RUNNING.value
    counted = _by_trial(trials.c.state, live).group_by(trials.c.state)
    counted = counted.having(or_(and_(is_running, live != 1), and_(~is_running, live != 0)))
    for name, trial, state, n in connection.execute(_of(counted, which)):
        yield Violation(name, trial, f"it is {state} and has {n} live attempts")


def last_outcomes_agree(connection: Connection, which: Which) -> Iterator[Violation]:
    """A trial's last attempt ended in a way that leads to the trial's state."""
    last = select(func.max(attempts.c.number)).where(_same_trial(attempts)).correlate(trials).scalar_subquery()
    legal = or_(
        trials.c.state == State.RUNNING.value,
        *(
            and_(trials.c.state == state.value, attempts.c.outcome.in_([o.value for o in outcomes]))
            for state, outcomes in LAST_OUTCOMES.items()
        ),
    )
    found = (
        select(studies.c.name, trials.c.number, trials.c.state, attempts.c.outcome)
        .select_from(_joined(attempts))
        .where(attempts.c.number == last, attempts.c.outcome.is_not(None), ~legal)
    )
    for name, trial, state, outcome in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"it is {state}, but its last attempt ended {outcome}")


def attempts_that_ended_say_when(connection: Connection, which: Which) -> Iterator[Violation]:
    """An attempt has an end exactly where it has an outcome, and not before its start."""
    odd = or_(attempts.c.outcome.is_(None) != attempts.c.ended.is_(None), attempts.c.ended < attempts.c.started)
    found = select(studies.c.name, trials.c.number, attempts.c.number).select_from(_joined(attempts)).where(odd)
    for name, trial, attempt in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"the times of attempt {attempt} do not agree with its outcome")


def the_ledger_adds_up(connection: Connection, which: Which) -> Iterator[Violation]:
    """A trial's GPU-seconds are the sum of its attempts'."""
    total = func.sum(attempts.c.gpu_seconds)
    off = func.abs(trials.c.gpu_seconds - total) > SAME_SECONDS * (1 + func.abs(total))
    counted = _by_trial(trials.c.gpu_seconds, total).group_by(trials.c.gpu_seconds).having(off)
    for name, trial, charged, spent in connection.execute(_of(counted, which)):
        yield Violation(name, trial, f"it is charged {charged:g} GPU-seconds, its attempts took {spent:g}")


def no_report_is_ahead(connection: Connection, which: Which) -> Iterator[Violation]:
    """No report stands beyond what its trial has trained."""
    found = (
        select(studies.c.name, trials.c.number, reports.c.resource, trials.c.resource)
        .select_from(_joined(reports))
        .where(reports.c.resource > trials.c.resource)
    )
    for name, trial, reported, trained in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"it has a report at {reported:g}, but trained to {trained:g} only")


def results_are_there(connection: Connection, which: Which) -> Iterator[Violation]:
    """A complete trial has a value, a failed one says why."""
    nothing = or_(
        and_(trials.c.state == State.COMPLETE.value, trials.c.value.is_(None), trials.c.objective_values.is_(None)),
        and_(trials.c.state == State.FAILED.value, trials.c.error_kind.is_(None), _has_attempts()),
    )
    found = select(studies.c.name, trials.c.number, trials.c.state)
    found = found.join_from(studies, trials, trials.c.study_id == studies.c.id).where(nothing)
    for name, trial, state in connection.execute(_of(found, which)):
        missing = "value" if state == State.COMPLETE.value else "error"
        yield Violation(name, trial, f"it is {state}, but has no {missing}")


def repeats_have_an_original(connection: Connection, which: Which) -> Iterator[Violation]:
    """A confirmation names another trial of its study that it repeats."""
    original = trials.alias("original")
    there = and_(original.c.study_id == trials.c.study_id, original.c.number == trials.c.repeats)
    found = (
        select(studies.c.name, trials.c.number, trials.c.repeats)
        .select_from(studies.join(trials, trials.c.study_id == studies.c.id).outerjoin(original, there))
        .where(trials.c.repeats.is_not(None), or_(original.c.number.is_(None), original.c.number == trials.c.number))
    )
    for name, trial, repeats in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"it repeats trial {repeats}, which is not another trial of the study")


CHECKS: tuple[Callable[[Connection, Which], Iterator[Violation]], ...] = (
    numbers_have_no_gaps,
    attempts_have_no_gaps,
    one_attempt_lives,
    last_outcomes_agree,
    attempts_that_ended_say_when,
    the_ledger_adds_up,
    no_report_is_ahead,
    results_are_there,
    repeats_have_an_original,
)


def _same_trial(part: FromClause) -> ColumnElement[bool]:
    return and_(part.c.study_id == trials.c.study_id, part.c.trial == trials.c.number)


def _has_attempts() -> ColumnElement[bool]:
    return select(attempts.c.number).where(_same_trial(attempts)).correlate(trials).exists()


def _joined(part: FromClause) -> FromClause:
    return studies.join(trials, trials.c.study_id == studies.c.id).join(part, _same_trial(part))


def _by_trial(*columns: ColumnElement[Any]) -> Select[Any]:
    """Studies' names, trials' numbers and aggregates over the attempts of each trial."""
    grouped = select(studies.c.name, trials.c.number, *columns).select_from(_joined(attempts))
    return grouped.group_by(studies.c.id, studies.c.name, trials.c.number)


def _of(statement: Select[Any], which: Which) -> Select[Any]:
    return statement if which is None else statement.where(which)
