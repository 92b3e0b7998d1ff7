"""The objectives of a study, and its best trials, of which only those that are shown are read."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import sqlalchemy as sa

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import sign_of
from hpsearch.search.ranking.again import (
    Again,
    EarlierRepeats,
    Seeds,
    Spread,
    earlier_repeats,
    spread_of,
)
from hpsearch.search.ranking.pareto import pareto_front
from hpsearch.search.ranking.repeats import Repeats, runs_of
from hpsearch.search.ranking.selection import Ranked, Ranking, counts, expectation_of, rank
from hpsearch.store.reading.names import WITH_LATEST, numbered
from hpsearch.store.reading.queries import (
    StudyHead,
    TrialDetail,
    TrialRow,
    compiled_for,
    each_trial,
    rows_of,
    study_heads,
    trial_detail,
    trials_of,
)
from hpsearch.store.schema import RANKED, STUDY, TRIAL, Condition, Sql, special, studies, trials
from hpsearch.store.study_texts import metrics_in


@dataclass(frozen=True, slots=True)
class GoalColumns:
    """One objective of a study."""

    index: int
    metric: str
    maximize: bool

    @property
    def column(self) -> str:
        """The column of its values, as they were shown."""
        return f"value_{self.index}"

    @property
    def standing(self) -> str:
        """The column of the values that are expected of trials in full, or else their values."""
        return f"standing_{self.index}"


def goals_of(study: StudyHead) -> list[GoalColumns]:
    """The objectives of a study, named as its study file does."""
    named = metrics_in(study.spec)
    if len(named) != len(study.directions):
        several = len(study.directions) > 1
        named = [f"value {i}" if several else "value" for i in range(len(study.directions))]
    return [
        GoalColumns(index, metric, direction == "maximize")
        for index, (metric, direction) in enumerate(zip(named, study.directions, strict=True))
    ]


NOTHING_KNOWN = Seeds(Repeats({}, "minimize"), None)  # of how far seeds move the values of a study

COMPARED = 20
"""The trials that are compared at least, to find those that cannot be told from the best one."""


def best_trials(
    connection: sa.Connection, study: StudyHead, top: int | None = None, *, where: str | None = None
) -> list[Ranked[TrialRow]]:
    """The best trials of a study that `where` selects, best first: at most `top`; without it one,
    or with several objectives all that no other one beats. Those that tie with the best one are
    looked for among the first `COMPARED`.

    Raises:
        FilterError: `where` does not parse or names something unknown.
        UserError: The study has no direction.
    """
    if len(study.directions) > 1:
        front: list[Ranked[TrialRow]] = []
        for part in each_trial(connection, study, where=where).parts():
            candidates = [*(each.trial for each in front), *part]
            front = pareto_front(candidates, study.directions)
        return front[:top]
    compared = _compared(connection, study, max(top or 1, COMPARED), where)
    known = _ranking(connection, study, compared)
    ranked = rank(compared, study.direction, study.metric, known)[: top or 1]
    numbers = [each.trial.number for each in ranked]
    whole = rows_of(connection, trials_of(study).where(TRIAL.number.in_(numbered(numbers))))
    by_number = {row.number: row for row in whole}
    return [replace(each, trial=by_number[each.trial.number]) for each in ranked]


def details_again(
    connection: sa.Connection, study: StudyHead, numbers: Iterable[int]
) -> list[TrialDetail]:
    """Everything known of trials, as `with_again`. Raises UserError if no trial has a number."""
    found = [trial_detail(connection, study, number) for number in numbers]
    with_again(connection, study, [each.trial for each in found])
    return found


def with_again(connection: sa.Connection, study: StudyHead, rows: Sequence[TrialRow]) -> None:
    """Write into trials that can be ranked what comes of them when they are trained again, in place
    of what was expected of this training; others have no expectation."""
    if not study.has_best or not rows:
        return
    known = _ranking(connection, study, _repeats(connection, study))
    for row in rows:
        write_again(row, known.again(row) if counts(row) else None)


def write_again(row: TrialRow, again: Again | None) -> None:
    """Write into a trial what comes of it when it is trained again, as `with_again`."""
    for name, value in expectation_of(again).items():
        setattr(row, name, value)


def _ranking(connection: sa.Connection, study: StudyHead, rows: Sequence[TrialRow]) -> Ranking:
    """The facts on a study as a whole, of which these trials were read."""
    spread, earlier = _spread(connection, study), _earlier_repeats(connection, study)
    seeds = partial(Seeds, spread=spread, earlier=earlier)
    return Ranking(rows, study.direction, study.metric, seeds)


def _spread(connection: sa.Connection, study: StudyHead) -> Spread | None:
    sign = sign_of(study.direction)
    ranked = sa.and_(TRIAL.study_id == study.id, RANKED, TRIAL.violation == 0)
    standing = TRIAL.standing
    is_maximised = study.direction == "maximize"
    furthest = sa.func.min(standing) if is_maximised else sa.func.max(standing)
    count, worst = connection.execute(sa.select(sa.func.count(), furthest).where(ranked)).one()
    in_order = standing.desc() if is_maximised else standing.asc()
    scores = sa.select(standing).where(ranked).order_by(in_order)

    def best(most: int) -> list[float]:
        return [sign * score for score in connection.scalars(scores.limit(most))]

    return spread_of(count, best, sign * (worst or 0.0))


def _earlier_repeats(connection: sa.Connection, study: StudyHead) -> EarlierRepeats:
    statement = sa.select(STUDY.warm_start).where(STUDY.id == study.id)
    names = [each.name for each in connection.scalar(statement) or ()]
    found = []
    for head in study_heads(connection) if names else ():
        if head.name in names and head.has_best:
            runs = runs_of(_repeats(connection, head))
            if runs:
                found.append((runs, _spread(connection, head)))
    return earlier_repeats(found)


def _repeats(connection: sa.Connection, study: StudyHead) -> list[TrialRow]:
    found = {}
    for statement in (_REPEATS, _REPEATED):
        of_study = statement.where(TRIAL.study_id == study.id)
        found.update({row.number: row for _, row in _rows_by_study(connection, of_study)})
    return list(found.values())


def _compared(
    connection: sa.Connection, study: StudyHead, most: int, where: str | None
) -> list[TrialRow]:
    """The first trials that `where` selects, at most `most` by what they have shown themselves,
    and beside them all repeats and the trials that were repeated, whose place repeats change.

    Of trials that were not repeated, no repeat changes the order (`ranking.selection`), so that
    the first of all are among these.
    """
    columns = [TRIAL[name] for name in _RANKED_BY]
    of_study = sa.select(*columns).where(TRIAL.study_id == study.id)
    repeats = connection.execute(of_study.where(_is_repeat())).all()
    repeated = {row.repeats for row in repeats if row.repeats is not None}
    chosen = of_study.where(RANKED)
    if where:
        condition = compiled_for(connection, study, where, "--where")
        chosen = chosen.select_from(WITH_LATEST).where(condition)
    limit = most + len(repeated)
    others = chosen.order_by(*_order(study.direction)).limit(limit)
    first = connection.execute(others.where(TRIAL.violation == 0)).all()
    rows = [*repeats, *first]
    if len(first) < limit:
        rows += connection.execute(others.where(TRIAL.violation > 0))
    if repeated:
        rows += connection.execute(chosen.where(TRIAL.number.in_(numbered(repeated))))
    found = {row.number: row for row in rows}
    return [TrialRow(params={}, **row._mapping) for row in found.values()]


def waiting_trials(connection: sa.Connection, study: StudyHead) -> list[TrialRow]:
    """The trials that wait with a checkpoint, at a rung or cut short, or did when the study ended
    without them: `brain.retention` bounds their number."""
    state, waiting = TRIAL.state, (State.PAUSED.value, State.QUEUED.value)
    left = sa.and_(state == State.PRUNED.value, TRIAL.left_as.in_(waiting))
    waits = sa.or_(state.in_(waiting), left)
    return rows_of(connection, trials_of(study).where(waits, TRIAL.checkpoint.is_not(None)))


def _is_repeat(of: sa.FromClause = trials) -> Condition:
    return sa.and_(special(of), of.c.role == Role.CONFIRM.value)


def _order(direction: str, of: sa.FromClause = trials) -> list[Sql]:
    """The order of trials that were not repeated, as `ranking.selection` has it. Those of one
    violation are read in the order of an index, whichever the direction."""
    standing = of.c.standing.desc() if direction == "maximize" else of.c.standing.asc()
    is_incomplete = of.c.state != State.COMPLETE.value
    return [of.c.violation, standing, is_incomplete, of.c.resource.desc(), of.c.number]


def best_of_each(
    connection: sa.Connection, heads: Sequence[StudyHead]
) -> dict[int, Ranked[TrialRow] | None]:
    """The best trial of each study that has one direction, by the study's id, as far as its order
    needs it; None without one. Of all studies the rows are read at once, and not how far seeds move
    their values."""
    asked = {head.id: head for head in heads if head.has_best}
    compared: defaultdict[int, dict[int, TrialRow]] = defaultdict(dict)
    complete = set()
    for direction in ("minimize", "maximize"):
        for study_id, row in _rows_by_study(connection, _firsts(direction)):
            if study_id in asked and asked[study_id].direction == direction:
                compared[study_id][row.number] = row
                complete.add(study_id)
    for statement in (_REPEATS, _REPEATED):
        for study_id, row in _rows_by_study(connection, statement):
            compared[study_id][row.number] = row
    found: dict[int, Ranked[TrialRow] | None] = {}
    for study_id, head in asked.items():
        if study_id in complete:
            rows, direction = compared[study_id].values(), head.direction
            known = Ranking(rows, direction, head.metric, lambda _: NOTHING_KNOWN)
            ranked = rank(rows, direction, head.metric, known)
        else:  # nothing keeps the limits, or nothing can be ranked
            ranked = best_trials(connection, head, 1)
        found[study_id] = next(iter(ranked), None)
    return found


def _rows_by_study(
    connection: sa.Connection, statement: sa.Select[Any]
) -> Iterator[tuple[int, TrialRow]]:
    for row in connection.execute(statement):
        if row.number is not None:
            cells = dict(row._mapping)
            yield cells.pop("study_id"), TrialRow(params={}, **cells)


_RANKED_BY = (
    *("number", "state", "role", "repeats", "resource", "value"),
    *("expected", "expected_deviation", "expected_low", "expected_high", "system_attrs"),
)
_EACH = sa.select(TRIAL.study_id, *(TRIAL[name] for name in _RANKED_BY))
_REPEATS = _EACH.where(_is_repeat())
_repeat = trials.alias("repeat")
_repeated = sa.select(TRIAL.study_id, TRIAL.repeats).where(_is_repeat()).distinct().subquery()
_REPEATED = _EACH.join_from(
    _repeated,
    trials,
    sa.and_(TRIAL.study_id == _repeated.c.study_id, TRIAL.number == _repeated.c.repeats),
)


def _firsts(direction: str) -> sa.Select[Any]:
    """The first trial of each study, of those that keep its limits and were not repeated."""
    other = trials.alias("other")
    repeats = sa.and_(_repeat.c.study_id == other.c.study_id, _repeat.c.repeats == other.c.number)
    number = (
        sa.select(other.c.number)
        .where(other.c.study_id == STUDY.id, other.c.standing.is_not(None))
        .where(other.c.violation == 0, ~sa.exists().where(_is_repeat(_repeat), repeats))
        .order_by(*_order(direction, other))
        .limit(1)
        .scalar_subquery()
    )
    is_first = sa.and_(TRIAL.study_id == STUDY.id, TRIAL.number == number)
    in_order = _EACH.join_from(studies, trials, is_first, isouter=True)
    return in_order.where(sa.cast(STUDY.directions, sa.Text).contains(direction))
