"""What must always be true of a database, and the queries that find where it is not.

For `hpsearch db check`, and for tests that kill things. Each check is a query over all studies, or
one of them, and returns the trials it does not hold for. They hold at every moment, also while
drivers work: read them in one transaction. Files are not looked at here: that is
`hpsearch.store.audit.checkpoints`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import ValidationError
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    ScalarSelect,
    Select,
    and_,
    case,
    func,
    or_,
    select,
)

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome
from hpsearch.store import damage
from hpsearch.store.damage import Check, Violation, Which
from hpsearch.store.schema import attempts, reports, studies, trials
from hpsearch.study_file.models import PerTrial

SAME_SECONDS = 1e-6
"""Relative error allowed between a sum made in Python and one made by the database."""

LAST_OUTCOMES: dict[State, frozenset[Outcome]] = {
    # A trial that failed has its turn again where its study gave up and is resumed.
    State.QUEUED: frozenset({Outcome.LOST, Outcome.INTERRUPTED, Outcome.FAILED}),
    State.PAUSED: frozenset({Outcome.PAUSED}),
    State.COMPLETE: frozenset({Outcome.COMPLETE}),
    # A trial that waited, at a rung or for a slot, is pruned where its study ends.
    State.PRUNED: frozenset(
        {Outcome.PRUNED, Outcome.PAUSED, Outcome.LOST, Outcome.INTERRUPTED, Outcome.FAILED}
    ),
    State.FAILED: frozenset({Outcome.FAILED, Outcome.LOST}),
}
"""How the last attempt of a trial that does not run may have ended."""

CONTINUED: frozenset[Outcome] = frozenset(
    {Outcome.LOST, Outcome.INTERRUPTED, Outcome.PAUSED, Outcome.FAILED}
)
"""How an attempt may have ended that another one of the same trial followed; after one that failed,
where the study gave up and was resumed."""


_IN_STUDY = trials.c.study_id == studies.c.id


def violations(connection: Connection, study_id: int | None = None) -> list[Violation]:
    """Everything that is wrong with one study, or with all of them. Of a study with damaged cells
    only these: what else would be found follows from them."""
    only = None if study_id is None else studies.c.id == study_id
    found: list[Violation] = [*damage.damaged_rows(connection, only)]
    damaged = {each.study for each in found}
    for check in CHECKS:
        found += [each for each in check(connection, only) if each.study not in damaged]
    return found


def numbers_have_no_gaps(connection: Connection, which: Which) -> Iterator[Violation]:
    """Trials are numbered from 0 (no number occurs twice: it is their key)."""
    n = func.count()
    low = func.min(trials.c.number)
    high = func.max(trials.c.number)
    counted = (
        select(studies.c.name, n, low, high)
        .join_from(studies, trials, _IN_STUDY)
        .group_by(studies.c.id, studies.c.name)
        .having(or_(low != 0, high != n - 1))
    )
    for name, count, first, last in connection.execute(_of(counted, which)):
        what = f"{count} trials have numbers from {first} to {last}: some are missing"
        yield Violation(name, None, what)


def attempts_have_no_gaps(connection: Connection, which: Which) -> Iterator[Violation]:
    """The attempts of a trial are numbered from 1."""
    n = func.count()
    low = func.min(attempts.c.number)
    high = func.max(attempts.c.number)
    counted = _by_trial(n, low, high).having(or_(low != 1, high != n))
    for name, trial, count, first, last in connection.execute(_of(counted, which)):
        what = f"{count} attempts have numbers from {first} to {last}: some are missing"
        yield Violation(name, trial, what)


def one_attempt_lives(connection: Connection, which: Which) -> Iterator[Violation]:
    """A running trial has one live attempt (none if it was made by hand), any other trial has
    none."""
    state_of = trials.c.state
    live = _count_where(attempts.c.outcome.is_(None))
    odd = _miscounted(live, state_of == State.RUNNING.value)
    counted = _by_trial(state_of, live).group_by(state_of).having(odd)
    for name, trial, state, n in connection.execute(_of(counted, which)):
        yield Violation(name, trial, f"it is {state} and has {n} live attempts")


def last_outcomes_agree(connection: Connection, which: Which) -> Iterator[Violation]:
    """A trial's last attempt ended in a way that leads to the trial's state."""
    state_of = trials.c.state
    outcome_of = attempts.c.outcome
    legal = [state_of == State.RUNNING.value]
    for state, outcomes in LAST_OUTCOMES.items():
        leads_there = outcome_of.in_([outcome.value for outcome in outcomes])
        legal.append(and_(state_of == state.value, leads_there))
    is_last = attempts.c.number == _last_attempt()
    found = _parts(attempts, state_of, outcome_of)
    found = found.where(is_last, outcome_of.is_not(None), ~or_(*legal))
    for name, trial, state, outcome in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"it is {state}, but its last attempt ended {outcome}")


def attempts_that_were_followed_left_something_to_do(
    connection: Connection, which: Which
) -> Iterator[Violation]:
    """Nothing follows an attempt that completed its trial, or at which a pruner stopped it."""
    number_of = attempts.c.number
    outcome_of = attempts.c.outcome
    may_go_on = [outcome.value for outcome in CONTINUED]
    was_followed = number_of < _last_attempt()
    found = _parts(attempts, number_of, outcome_of)
    found = found.where(was_followed, outcome_of.not_in(may_go_on))
    for name, trial, attempt, outcome in connection.execute(_of(found, which)):
        what = f"attempt {attempt} ended {outcome}, and yet another one followed"
        yield Violation(name, trial, what)


def one_attempt_wins(connection: Connection, which: Which) -> Iterator[Violation]:
    """Exactly one attempt of a complete trial completed it; none of any other trial did."""
    state_of = trials.c.state
    wins = _count_where(attempts.c.outcome == Outcome.COMPLETE.value)
    odd = _miscounted(wins, state_of == State.COMPLETE.value)
    counted = _by_trial(state_of, wins).group_by(state_of).having(odd)
    for name, trial, state, n in connection.execute(_of(counted, which)):
        yield Violation(name, trial, f"it is {state} and has {n} winning attempts")


def attempts_that_ended_say_when(connection: Connection, which: Which) -> Iterator[Violation]:
    """An attempt has an end exactly where it has an outcome, and not before its start."""
    ended = attempts.c.ended
    lacks_one = attempts.c.outcome.is_(None) != ended.is_(None)
    ends_early = ended < attempts.c.started
    found = _parts(attempts, attempts.c.number).where(or_(lacks_one, ends_early))
    for name, trial, attempt in connection.execute(_of(found, which)):
        what = f"the times of attempt {attempt} do not agree with its outcome"
        yield Violation(name, trial, what)


def the_ledger_adds_up(connection: Connection, which: Which) -> Iterator[Violation]:
    """A trial's GPU-seconds are the sum of its attempts'; without attempts there are none."""
    charge = trials.c.gpu_seconds
    total = func.coalesce(func.sum(attempts.c.gpu_seconds), 0.0)
    off = func.abs(charge - total) > SAME_SECONDS * (1 + func.abs(total))
    both = studies.join(trials, _IN_STUDY).outerjoin(attempts, _same_trial(attempts))
    counted = (
        select(studies.c.name, trials.c.number, charge, total)
        .select_from(both)
        .group_by(studies.c.id, studies.c.name, trials.c.number, charge)
        .having(off)
    )
    for name, trial, charged, spent in connection.execute(_of(counted, which)):
        what = f"it is charged {charged:g} GPU-seconds, its attempts took {spent:g}"
        yield Violation(name, trial, what)


def no_report_is_ahead(connection: Connection, which: Which) -> Iterator[Violation]:
    """No report lies beyond what its trial has trained."""
    reported_at = reports.c.resource
    trained_to = trials.c.resource
    found = _parts(reports, reported_at, trained_to).where(reported_at > trained_to)
    for name, trial, reported, trained in connection.execute(_of(found, which)):
        what = f"it has a report at {reported:g}, but trained to {trained:g} only"
        yield Violation(name, trial, what)


def no_attempt_goes_on_past_the_budget(connection: Connection, which: Which) -> Iterator[Violation]:
    """An attempt has one report at its trial's budget or past it: what its code measures while it
    goes on after that is added to this report.

    How far past it that is depends on the code of users: a function or a command reports at the end
    of a step, which may be long. A trial whose driver was lost after this report may have another
    attempt, which may end elsewhere past the budget.
    """
    heads = select(studies.c.id, studies.c.name, studies.c.spec)
    for study, name, text in connection.execute(_of(heads, which)).all():
        budget = _per_trial(text)
        if budget is None:
            continue
        for trial, attempt, n, highest in connection.execute(_overreported(study, budget)):
            reported = f"{n} reports at or past its budget of {budget.total:g}, up to {highest:g}"
            yield Violation(name, trial, f"attempt {attempt} has {reported}")


def _overreported(study_id: int, budget: PerTrial) -> Select[Any]:
    """The attempts of a study with too many reports at or past its budget, by trial and number,
    how many these are, and the last one's resource."""
    resource = reports.c.resource
    return (
        select(reports.c.trial, reports.c.attempt, func.count(), func.max(resource))
        .where(reports.c.study_id == study_id, resource >= budget.total)
        .group_by(reports.c.trial, reports.c.attempt)
        .having(func.count() > 1)
    )


def final_reports_are_there(connection: Connection, which: Which) -> Iterator[Violation]:
    """What a finished trial has trained to, it has reported; a complete one has reported at all.

    One that continues another trial and has not come further has trained nothing itself.
    """
    state_of = trials.c.state
    trained_to = trials.c.resource
    ended = [state.value for state in State if state.terminal]
    is_over = state_of.in_(ended)
    began_at = func.coalesce(trials.c.continues_at, 0.0)
    has_reached = or_(trained_to > began_at, state_of == State.COMPLETE.value)
    is_final = and_(_same_trial(reports), reports.c.resource == trained_to)
    final = select(reports.c.trial).where(is_final).correlate(trials)
    found = select(studies.c.name, trials.c.number, state_of, trained_to)
    found = found.join_from(studies, trials, _IN_STUDY)
    found = found.where(is_over, has_reached, _has_attempts(), ~final.exists())
    for name, trial, state, resource in connection.execute(_of(found, which)):
        yield Violation(name, trial, f"it is {state} at {resource:g}, but has no report there")


def results_are_there(connection: Connection, which: Which) -> Iterator[Violation]:
    """A complete trial has a value, a failed one says why."""
    trial_has = trials.c
    is_complete = trial_has.state == State.COMPLETE.value
    has_no_value = and_(trial_has.value.is_(None), trial_has.objective_values.is_(None))
    lacks_value = and_(is_complete, has_no_value)
    has_failed = trial_has.state == State.FAILED.value
    says_nothing = and_(trial_has.error_kind.is_(None), _has_attempts())
    lacks_error = and_(has_failed, says_nothing)
    odd = or_(lacks_value, lacks_error)
    found = select(studies.c.name, trial_has.number, trial_has.state)
    found = found.join_from(studies, trials, _IN_STUDY).where(odd)
    for name, trial, state in connection.execute(_of(found, which)):
        missing = "value" if state == State.COMPLETE.value else "error"
        yield Violation(name, trial, f"it is {state}, but has no {missing}")


def expectations_are_whole(connection: Connection, which: Which) -> Iterator[Violation]:
    """What is expected of a trial is a finite number, and so is its deviation, which is not below
    zero and stands beside an expectation."""
    trial_has = trials.c
    expected = trial_has.expected
    deviation = trial_has.expected_deviation
    stands_alone = and_(deviation.is_not(None), expected.is_(None))
    odd = or_(stands_alone, ~_is_finite(expected), ~_is_finite(deviation), deviation < 0)
    found = select(studies.c.name, trial_has.number, expected, deviation)
    found = found.join_from(studies, trials, _IN_STUDY).where(odd)
    for name, trial, value, spread in connection.execute(_of(found, which)):
        what = f"its expectation is {_shown(value)}, with a deviation of {_shown(spread)}"
        yield Violation(name, trial, what)


def repeats_have_an_original(connection: Connection, which: Which) -> Iterator[Violation]:
    """A confirmation names another trial of its study that it repeats."""
    original = trials.alias("original")
    number = trials.c.number
    repeated = trials.c.repeats
    named = and_(original.c.study_id == trials.c.study_id, original.c.number == repeated)
    both = studies.join(trials, _IN_STUDY).outerjoin(original, named)
    is_no_other = or_(original.c.number.is_(None), original.c.number == number)
    found = (
        select(studies.c.name, number, repeated)
        .select_from(both)
        .where(repeated.is_not(None), is_no_other)
    )
    for name, trial, repeats in connection.execute(_of(found, which)):
        what = f"it repeats trial {repeats}, which is not another trial of the study"
        yield Violation(name, trial, what)


def continued_trials_are_there(connection: Connection, which: Which) -> Iterator[Violation]:
    """A trial that continues another one names an earlier one of its study, the checkpoint that it
    began with and how far that was; it has no report before that."""
    number, source = trials.c.number, trials.c.continues
    others = trials.alias("others")
    named = and_(others.c.study_id == trials.c.study_id, others.c.number == source)
    both = studies.join(trials, _IN_STUDY).outerjoin(others, named)
    facts = (trials.c.continues_at, trials.c.continues_with)
    is_whole = and_(*(fact.is_not(None) for fact in facts))
    is_earlier = and_(others.c.number.is_not(None), source < number)
    began_early = and_(_same_trial(reports), reports.c.resource <= trials.c.continues_at)
    early = select(reports.c.trial).where(began_early).correlate(trials).exists()
    found = (
        select(studies.c.name, number, source)
        .select_from(both)
        .where(source.is_not(None), or_(~is_whole, ~is_earlier, early))
    )
    for name, trial, other in connection.execute(_of(found, which)):
        what = f"it continues trial {other}, but not from a place that is on record"
        yield Violation(name, trial, what)


CHECKS: tuple[Check, ...] = (
    numbers_have_no_gaps,
    attempts_have_no_gaps,
    one_attempt_lives,
    last_outcomes_agree,
    attempts_that_were_followed_left_something_to_do,
    one_attempt_wins,
    attempts_that_ended_say_when,
    the_ledger_adds_up,
    no_report_is_ahead,
    no_attempt_goes_on_past_the_budget,
    final_reports_are_there,
    results_are_there,
    expectations_are_whole,
    repeats_have_an_original,
    continued_trials_are_there,
)


def _per_trial(spec: str) -> PerTrial | None:
    """What a study's trials may train; None of a study that was made without a study file."""
    try:
        return PerTrial.model_validate(yaml.safe_load(spec)["budget"]["per_trial"])
    except (yaml.YAMLError, ValidationError, KeyError, TypeError):
        return None


def _miscounted(n: ColumnElement[Any], has_one: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a trial has not exactly one of something where it should, or any where it should
    not."""
    not_one = and_(has_one, n != 1)
    not_none = and_(~has_one, n != 0)
    return or_(not_one, not_none)


def _is_finite(number: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether a number is finite; unknown where it is NULL."""
    largest = sys.float_info.max
    return number.between(-largest, largest)


def _shown(number: float | None) -> str:
    return "nothing" if number is None else f"{number:g}"


def _same_trial(part: FromClause) -> ColumnElement[bool]:
    return and_(part.c.study_id == trials.c.study_id, part.c.trial == trials.c.number)


def _has_attempts() -> ColumnElement[bool]:
    return select(attempts.c.number).where(_same_trial(attempts)).correlate(trials).exists()


def _last_attempt() -> ScalarSelect[int]:
    """The number of a trial's last attempt."""
    last = select(func.max(attempts.c.number)).where(_same_trial(attempts))
    return last.correlate(trials).scalar_subquery()


def _count_where(condition: ColumnElement[bool]) -> ColumnElement[int]:
    """How many rows of a group a condition holds for."""
    return func.sum(case((condition, 1), else_=0))


def _parts(part: FromClause, *columns: ColumnElement[Any]) -> Select[Any]:
    """Studies' names, trials' numbers and columns of each attempt or report."""
    joined = studies.join(trials, _IN_STUDY).join(part, _same_trial(part))
    return select(studies.c.name, trials.c.number, *columns).select_from(joined)


def _by_trial(*columns: ColumnElement[Any]) -> Select[Any]:
    """Studies' names, trials' numbers and aggregates over the attempts of each trial."""
    return _parts(attempts, *columns).group_by(studies.c.id, studies.c.name, trials.c.number)


def _of(statement: Select[Any], which: Which) -> Select[Any]:
    return statement if which is None else statement.where(which)
