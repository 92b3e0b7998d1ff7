"""What must always be true of a database, and the queries that find where it is not.

For `hpsearch db check`, and for tests that kill things. Each check is a query over all studies, or one of them, and
returns the trials it does not hold for. They hold at every moment, also while drivers work: read them in one
transaction. Files are not looked at here: that is `hpsearch.store.saved`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, case, func, or_, select

from hpsearch.lifecycle import State
from hpsearch.records import Outcome
from hpsearch.spec import PerTrial
from hpsearch.store import damage
from hpsearch.store.damage import Check, Violation, Which
from hpsearch.store.schema import attempts, reports, studies, trials
from trials.contract import Unit

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

CONTINUED: frozenset[Outcome] = frozenset({Outcome.LOST, Outcome.INTERRUPTED, Outcome.PAUSED})
"""How an attempt may have ended that another one of the same trial followed."""


def violations(connection: Connection, study_id: int | None = None) -> list[Violation]:
    """Everything that is wrong with one study, or with all of them."""
    only = None if study_id is None else studies.c.id == study_id
    return [violation for check in CHECKS for violation in check(connection, only)]


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


def attempts_that_were_followed_left_something_to_do(connection: Connection, which: Which) -> Iterator[Violation]:
    """Only an attempt that was lost, interrupted or paused has another one after it."""
    last = select(func.max(attempts.c.number)).where(_same_trial(attempts)).correlate(trials).scalar_subquery()
    found = (
        select(studies.c.name, trials.c.number, attempts.c.number, attempts.c.outcome)
        .select_from(_joined(attempts))
        .where(attempts.c.number < last, attempts.c.outcome.not_in([outcome.value for outcome in CONTINUED]))
    )
    for name, trial, attempt, outcome in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"attempt {attempt} ended {outcome}, and yet another one followed")


def one_attempt_wins(connection: Connection, which: Which) -> Iterator[Violation]:
    """Exactly one attempt of a complete trial completed it; none of any other trial did."""
    wins = func.sum(case((attempts.c.outcome == Outcome.COMPLETE.value, 1), else_=0))
    is_complete = trials.c.state == State.COMPLETE.value
    counted = _by_trial(trials.c.state, wins).group_by(trials.c.state)
    counted = counted.having(or_(and_(is_complete, wins != 1), and_(~is_complete, wins != 0)))
    for name, trial, state, n in connection.execute(_of(counted, which)):
        yield Violation(name, trial, f"it is {state} and has {n} winning attempts")


def attempts_that_ended_say_when(connection: Connection, which: Which) -> Iterator[Violation]:
    """An attempt has an end exactly where it has an outcome, and not before its start."""
    odd = or_(attempts.c.outcome.is_(None) != attempts.c.ended.is_(None), attempts.c.ended < attempts.c.started)
    found = select(studies.c.name, trials.c.number, attempts.c.number).select_from(_joined(attempts)).where(odd)
    for name, trial, attempt in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"the times of attempt {attempt} do not agree with its outcome")


def the_ledger_adds_up(connection: Connection, which: Which) -> Iterator[Violation]:
    """A trial's GPU-seconds are the sum of its attempts'; without attempts there are none."""
    total = func.coalesce(func.sum(attempts.c.gpu_seconds), 0.0)
    off = func.abs(trials.c.gpu_seconds - total) > SAME_SECONDS * (1 + func.abs(total))
    both = studies.join(trials, trials.c.study_id == studies.c.id).outerjoin(attempts, _same_trial(attempts))
    counted = select(studies.c.name, trials.c.number, trials.c.gpu_seconds, total).select_from(both)
    counted = counted.group_by(studies.c.id, studies.c.name, trials.c.number, trials.c.gpu_seconds).having(off)
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


def no_report_is_beyond_the_budget(connection: Connection, which: Which) -> Iterator[Violation]:
    """A trial reports once at its budget, or less than a report's interval past it, and never again."""
    heads = select(studies.c.id, studies.c.name, studies.c.spec)
    for study, name, text in connection.execute(_of(heads, which)).all():
        budget = _per_trial(text)
        if budget is None:
            continue
        late = select(reports.c.trial, func.count(), func.max(reports.c.resource)).group_by(reports.c.trial)
        late = late.where(reports.c.study_id == study, reports.c.resource >= budget.total)
        past = reports.c.resource >= budget.total + budget.report_interval
        over = func.count() > 1
        if budget.unit is not Unit.SECONDS:  # a step that takes long may end far past a budget of time
            over = or_(over, func.max(case((past, 1), else_=0)) > 0)
        for trial, n, highest in connection.execute(late.having(over)):
            what = f"it has {n} reports at or past its budget of {budget.total:g}, up to {highest:g}"
            yield Violation(name, trial, what)


def final_reports_are_there(connection: Connection, which: Which) -> Iterator[Violation]:
    """What a finished trial has trained to, it has reported; a complete one has reported at all."""
    final = select(reports.c.trial).where(_same_trial(reports), reports.c.resource == trials.c.resource)
    over = [state.value for state in State if state.terminal]
    reached = or_(trials.c.resource > 0, trials.c.state == State.COMPLETE.value)
    found = select(studies.c.name, trials.c.number, trials.c.state, trials.c.resource)
    found = found.join_from(studies, trials, trials.c.study_id == studies.c.id)
    found = found.where(trials.c.state.in_(over), reached, _has_attempts(), ~final.correlate(trials).exists())
    for name, trial, state, resource in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"it is {state} at {resource:g}, but has no report there")


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


CHECKS: tuple[Check, ...] = (
    *damage.CHECKS,
    numbers_have_no_gaps,
    attempts_have_no_gaps,
    one_attempt_lives,
    last_outcomes_agree,
    attempts_that_were_followed_left_something_to_do,
    one_attempt_wins,
    attempts_that_ended_say_when,
    the_ledger_adds_up,
    no_report_is_ahead,
    no_report_is_beyond_the_budget,
    final_reports_are_there,
    results_are_there,
    repeats_have_an_original,
)


def _per_trial(spec: str) -> PerTrial | None:
    """What a study's trials may train; None of a study that was made without a study file."""
    try:
        return PerTrial.model_validate(yaml.safe_load(spec)["budget"]["per_trial"])
    except (yaml.YAMLError, ValidationError, KeyError, TypeError):
        return None


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
