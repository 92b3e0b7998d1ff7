"""The rules that a database always keeps, and the queries that find where it does not.

For `hpsearch db check`, and for tests that kill things. They hold at every moment, also while
drivers work: read them in one transaction. `hpsearch.store.audit.checkpoints` looks at files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, case, func, or_, select

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


@dataclass(frozen=True, eq=False)
class Invariant:
    """Something that must hold for every trial, or for every study."""

    rule: str
    broken: Select[Any]
    """Selects where it does not: the `name` of the study, the `number` of the trial, and what the
    text names."""
    text: str  # the fault, with columns in braces

    def __call__(self, connection: Connection, which: Which) -> Iterator[Violation]:
        for row in connection.execute(_of(self.broken, which)):
            cells = dict(row._mapping)
            shown = {name: _shown(cell) for name, cell in cells.items()}
            yield Violation(cells["name"], cells.get("number"), self.text.format(**shown))


def _shown(cell: Any) -> Any:
    if cell is None:
        return "nothing"
    return f"{cell:g}" if isinstance(cell, float) else cell


def _of(statement: Select[Any], which: Which) -> Select[Any]:
    return statement if which is None else statement.where(which)


# ------------------------------------------------------------------------------- parts of queries


def _same_trial(part: FromClause) -> ColumnElement[bool]:
    return and_(part.c.study_id == trials.c.study_id, part.c.trial == trials.c.number)


def _each(joined: FromClause, **columns: ColumnElement[Any]) -> Select[Any]:
    """The name of the study, the number of the trial and columns of each row of a join."""
    named = [column.label(name) for name, column in columns.items()]
    return select(studies.c.name, trials.c.number, *named).select_from(joined)


def _by_trial(joined: FromClause, **columns: ColumnElement[Any]) -> Select[Any]:
    """As `_each`, with aggregates over each trial."""
    grouped = _each(joined, **columns)
    return grouped.group_by(studies.c.id, studies.c.name, trials.c.number)


def _has_one_where(
    attempt: ColumnElement[bool], state: State
) -> tuple[ColumnElement[int], ColumnElement[bool]]:
    """How many attempts of a trial are such, and whether that is wrong: trials in the state have
    one, others have none."""
    n = func.sum(case((attempt, 1), else_=0))
    is_in = trials.c.state == state.value
    return n, or_(and_(is_in, n != 1), and_(~is_in, n != 0))


def _is_infinite(number: ColumnElement[Any]) -> ColumnElement[bool]:
    largest = sys.float_info.max
    return ~number.between(-largest, largest)


_TRIALS = studies.join(trials, _IN_STUDY)
_ATTEMPTS = _TRIALS.join(attempts, _same_trial(attempts))
_ANY_ATTEMPTS = _TRIALS.outerjoin(attempts, _same_trial(attempts))
_REPORTS = _TRIALS.join(reports, _same_trial(reports))
_OTHERS = trials.alias("others")


def _with_other(number: ColumnElement[Any]) -> FromClause:
    """Trials with the one of their study that has a number."""
    named = and_(_OTHERS.c.study_id == trials.c.study_id, _OTHERS.c.number == number)
    return _TRIALS.outerjoin(_OTHERS, named)


_state = trials.c.state
_outcome = attempts.c.outcome
_HAS_ATTEMPTS = select(attempts.c.number).where(_same_trial(attempts)).correlate(trials).exists()
_LAST_ATTEMPT = (
    select(func.max(attempts.c.number))
    .where(_same_trial(attempts))
    .correlate(trials)
    .scalar_subquery()
)


def _wrong_last_outcome() -> ColumnElement[bool]:
    legal = [_state == State.RUNNING.value]
    for state, outcomes in LAST_OUTCOMES.items():
        leads_there = _outcome.in_([outcome.value for outcome in outcomes])
        legal.append(and_(_state == state.value, leads_there))
    return and_(attempts.c.number == _LAST_ATTEMPT, _outcome.is_not(None), ~or_(*legal))


def _lacks_final_report() -> ColumnElement[bool]:
    trained_to = trials.c.resource
    is_over = _state.in_([state.value for state in State if state.terminal])
    began_at = func.coalesce(trials.c.continues_at, 0.0)
    has_reached = or_(trained_to > began_at, _state == State.COMPLETE.value)
    is_final = and_(_same_trial(reports), reports.c.resource == trained_to)
    final = select(reports.c.trial).where(is_final).correlate(trials)
    return and_(is_over, has_reached, _HAS_ATTEMPTS, ~final.exists())


def _lacks_result() -> ColumnElement[bool]:
    trial = trials.c
    has_no_value = and_(trial.value.is_(None), trial.objective_values.is_(None))
    lacks_value = and_(_state == State.COMPLETE.value, has_no_value)
    says_nothing = and_(trial.error_kind.is_(None), _HAS_ATTEMPTS)
    return or_(lacks_value, and_(_state == State.FAILED.value, says_nothing))


def _continues_nothing() -> ColumnElement[bool]:
    trial = trials.c
    lacks_facts = or_(trial.continues_at.is_(None), trial.continues_with.is_(None))
    is_not_earlier = or_(_OTHERS.c.number.is_(None), trial.continues >= trial.number)
    began_early = and_(_same_trial(reports), reports.c.resource <= trial.continues_at)
    early = select(reports.c.trial).where(began_early).correlate(trials).exists()
    return and_(trial.continues.is_not(None), or_(lacks_facts, is_not_earlier, early))


_LIVE, _WRONG_LIVE = _has_one_where(_outcome.is_(None), State.RUNNING)
_WINS, _WRONG_WINS = _has_one_where(_outcome == Outcome.COMPLETE.value, State.COMPLETE)
_COUNT = func.count()
_SPENT = func.coalesce(func.sum(attempts.c.gpu_seconds), 0.0)
_TOLERANCE = SAME_SECONDS * (1 + func.abs(_SPENT))
_FIRST_TRIAL, _LAST_TRIAL = func.min(trials.c.number), func.max(trials.c.number)
_FIRST, _LAST = func.min(attempts.c.number), func.max(attempts.c.number)
_DEVIATION = trials.c.expected_deviation
_REPEATED = trials.c.repeats

# --------------------------------------------------------------------------------------- the rules


def no_attempt_goes_on_past_the_budget(connection: Connection, which: Which) -> Iterator[Violation]:
    """An attempt has one report at its trial's budget or past it, to which later measurements are
    added. How far past it depends on the code of users, which reports at the end of a step;
    after a lost driver another attempt may end elsewhere past the budget."""
    heads = select(studies.c.id, studies.c.name, studies.c.spec)
    for study, name, text in connection.execute(_of(heads, which)).all():
        budget = _per_trial(text)
        if budget is None:
            continue
        for trial, attempt, n, highest in connection.execute(_overreported(study, budget)):
            reported = f"{n} reports at or past its budget of {budget.total:g}, up to {highest:g}"
            yield Violation(name, trial, f"attempt {attempt} has {reported}")


def _overreported(study_id: int, budget: PerTrial) -> Select[Any]:
    resource = reports.c.resource
    return (
        select(reports.c.trial, reports.c.attempt, func.count(), func.max(resource))
        .where(reports.c.study_id == study_id, resource >= budget.total)
        .group_by(reports.c.trial, reports.c.attempt)
        .having(func.count() > 1)
    )


def _per_trial(spec: str) -> PerTrial | None:
    """The budget of a study's trials; None of a study that was made without a study file."""
    try:
        return PerTrial.model_validate(yaml.safe_load(spec)["budget"]["per_trial"])
    except (yaml.YAMLError, ValidationError, KeyError, TypeError):
        return None


CHECKS: tuple[Check, ...] = (
    Invariant(
        "trials are numbered from 0 (no number occurs twice: it is their key)",
        select(
            studies.c.name, _COUNT.label("n"), _FIRST_TRIAL.label("low"), _LAST_TRIAL.label("high")
        )
        .select_from(_TRIALS)
        .group_by(studies.c.id, studies.c.name)
        .having(or_(_FIRST_TRIAL != 0, _LAST_TRIAL != _COUNT - 1)),
        "{n} trials have numbers from {low} to {high}: some are missing",
    ),
    Invariant(
        "the attempts of a trial are numbered from 1",
        _by_trial(_ATTEMPTS, n=_COUNT, low=_FIRST, high=_LAST).having(
            or_(_FIRST != 1, _LAST != _COUNT)
        ),
        "{n} attempts have numbers from {low} to {high}: some are missing",
    ),
    Invariant(
        "a running trial has one live attempt, any other trial has none",
        _by_trial(_ATTEMPTS, state=_state, n=_LIVE).group_by(_state).having(_WRONG_LIVE),
        "it is {state} and has {n} live attempts",
    ),
    Invariant(
        "a trial's last attempt ended in a way that leads to the trial's state",
        _each(_ATTEMPTS, state=_state, outcome=_outcome).where(_wrong_last_outcome()),
        "it is {state}, but its last attempt ended {outcome}",
    ),
    Invariant(
        "nothing follows an attempt that completed its trial, or at which a pruner stopped it",
        _each(_ATTEMPTS, attempt=attempts.c.number, outcome=_outcome).where(
            attempts.c.number < _LAST_ATTEMPT,
            _outcome.not_in([outcome.value for outcome in CONTINUED]),
        ),
        "attempt {attempt} ended {outcome}, and yet another one followed",
    ),
    Invariant(
        "exactly one attempt of a complete trial completed it; none of any other trial did",
        _by_trial(_ATTEMPTS, state=_state, n=_WINS).group_by(_state).having(_WRONG_WINS),
        "it is {state} and has {n} winning attempts",
    ),
    Invariant(
        "an attempt has an end exactly where it has an outcome, and not before its start",
        _each(_ATTEMPTS, attempt=attempts.c.number).where(
            or_(
                _outcome.is_(None) != attempts.c.ended.is_(None),
                attempts.c.ended < attempts.c.started,
            )
        ),
        "the times of attempt {attempt} do not agree with its outcome",
    ),
    Invariant(
        "a trial's GPU-seconds are the sum of its attempts'; without attempts there are none",
        _by_trial(_ANY_ATTEMPTS, charged=trials.c.gpu_seconds, spent=_SPENT)
        .group_by(trials.c.gpu_seconds)
        .having(func.abs(trials.c.gpu_seconds - _SPENT) > _TOLERANCE),
        "it is charged {charged} GPU-seconds, its attempts took {spent}",
    ),
    Invariant(
        "no report lies beyond what its trial has trained",
        _each(_REPORTS, reported=reports.c.resource, trained=trials.c.resource).where(
            reports.c.resource > trials.c.resource
        ),
        "it has a report at {reported}, but trained to {trained} only",
    ),
    no_attempt_goes_on_past_the_budget,
    Invariant(
        "what a finished trial has trained to, it has reported; a complete one has reported at all,"
        " and one that continues another trial may have trained nothing itself",
        _each(_TRIALS, state=_state, resource=trials.c.resource).where(_lacks_final_report()),
        "it is {state} at {resource}, but has no report there",
    ),
    Invariant(
        "a complete trial has a value, a failed one says why",
        _each(
            _TRIALS,
            state=_state,
            missing=case((_state == State.COMPLETE.value, "value"), else_="error"),
        ).where(_lacks_result()),
        "it is {state}, but has no {missing}",
    ),
    Invariant(
        "what is expected of a trial is a finite number, and so is its deviation, which is not"
        " below zero and stands beside an expectation",
        _each(_TRIALS, expected=trials.c.expected, deviation=_DEVIATION).where(
            or_(
                and_(_DEVIATION.is_not(None), trials.c.expected.is_(None)),
                _is_infinite(trials.c.expected),
                _is_infinite(_DEVIATION),
                _DEVIATION < 0,
            )
        ),
        "its expectation is {expected}, with a deviation of {deviation}",
    ),
    Invariant(
        "a confirmation names another trial of its study that it repeats",
        _each(_with_other(_REPEATED), repeats=_REPEATED).where(
            _REPEATED.is_not(None),
            or_(_OTHERS.c.number.is_(None), _OTHERS.c.number == trials.c.number),
        ),
        "it repeats trial {repeats}, which is not another trial of the study",
    ),
    Invariant(
        "a trial that continues another one names an earlier one of its study, the checkpoint that"
        " it began with and how far that was; it has no report before that",
        _each(_with_other(trials.c.continues), source=trials.c.continues).where(
            _continues_nothing()
        ),
        "it continues trial {source}, but not from a place that is on record",
    ),
)


def violations(connection: Connection, study_id: int | None = None) -> list[Violation]:
    """Everything that is wrong with one study, or with all of them. Of a study with damaged cells
    only these: what else would be found follows from them."""
    only = None if study_id is None else studies.c.id == study_id
    found: list[Violation] = [*damage.damaged_rows(connection, only)]
    damaged = {each.study for each in found}
    for check in CHECKS:
        found += [each for each in check(connection, only) if each.study not in damaged]
    return found
