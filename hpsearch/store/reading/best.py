"""The objectives of a study, and its best trials, of which only those that are shown are read."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
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
from hpsearch.search.ranking.evaluation import ENDS, evaluation_of
from hpsearch.search.ranking.pareto import pareto_front
from hpsearch.search.ranking.repeats import Repeats, runs_of
from hpsearch.search.ranking.selection import Ranked, Ranking, counts, expectation_of, rank
from hpsearch.search.ranking.verdicts.certificate import Certificate, Claim, defaults_among
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
from hpsearch.store.reading.rounds import noise_of_rounds
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
    looked for among the first `COMPARED`. Raises FilterError for `where`, and UserError without a
    direction."""
    if len(study.directions) > 1:
        return _front(connection, study, where)[:top]
    shown = top or 1
    compared = _compared(connection, study, max(shown, COMPARED), where)
    known = _ranking(connection, study, compared)
    ranked = rank(compared, study.direction, study.metric, known)[:shown]
    numbers = numbered([each.trial.number for each in ranked])
    read = trials_of(study).where(TRIAL.number.in_(numbers))
    by_number = {row.number: row for row in rows_of(connection, read)}
    return [replace(each, trial=by_number[each.trial.number]) for each in ranked]


def _front(
    connection: sa.Connection, study: StudyHead, where: str | None
) -> list[Ranked[TrialRow]]:
    front: list[Ranked[TrialRow]] = []
    for part in each_trial(connection, study, where=where).parts():
        candidates = [*(each.trial for each in front), *part]
        front = pareto_front(candidates, study.directions)
    return front


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
    spread, earlier = _spread(connection, study), _earlier_repeats(connection, study)
    evaluation = evaluation_of(_ends(connection, study))
    seeds = partial(Seeds, spread=spread, earlier=earlier, evaluation=evaluation)
    seeds = partial(seeds, rounds=noise_of_rounds(connection, study))
    return Ranking(rows, study.direction, study.metric, seeds)


def _spread(connection: sa.Connection, study: StudyHead) -> Spread | None:
    worst: Sql = sa.func.max(TRIAL.standing)
    if study.direction == "maximize":
        worst = sa.func.min(TRIAL.standing)
    facts = sa.select(sa.func.count(), worst).where(_keeps_limits(study))
    count, last = connection.execute(facts).one()
    best = partial(_best_scores, connection, study, _keeps_limits(study))
    return spread_of(count, best, sign_of(study.direction) * (last or 0.0))


def _best_scores(
    connection: sa.Connection, study: StudyHead, which: Condition, most: int
) -> list[float]:
    standing, sign = TRIAL.standing, sign_of(study.direction)
    best_first = standing.desc() if study.direction == "maximize" else standing.asc()
    found = connection.scalars(sa.select(standing).where(which).order_by(best_first).limit(most))
    return [sign * each for each in found]


def _keeps_limits(study: StudyHead) -> Condition:
    return sa.and_(TRIAL.study_id == study.id, RANKED, TRIAL.violation == 0)


def _ends(connection: sa.Connection, study: StudyHead) -> list[float]:
    """The scores that the best complete trials of a study ended with, the best first."""
    complete = sa.and_(_keeps_limits(study), TRIAL.state == State.COMPLETE.value)
    return _best_scores(connection, study, complete, ENDS)


def _earlier_repeats(connection: sa.Connection, study: StudyHead) -> EarlierRepeats:
    statement = sa.select(STUDY.warm_start).where(STUDY.id == study.id)
    names = [each.name for each in connection.scalar(statement) or ()]
    found = []
    for head in study_heads(connection) if names else ():
        if head.name not in names or not head.has_best:
            continue
        runs = runs_of(_repeats(connection, head))
        if runs:
            found.append((runs, _spread(connection, head)))
    return earlier_repeats(found)


def _repeats(connection: sa.Connection, study: StudyHead) -> list[TrialRow]:
    """The repeats of a study, and the trials that they repeat."""
    found = {}
    for statement in (_REPEATS, _REPEATED):
        of_study = statement.where(TRIAL.study_id == study.id)
        for _, row in _rows_by_study(connection, of_study):
            found[row.number] = row
    return list(found.values())


@dataclass(frozen=True)
class LastWord:
    """What a study says of its best trial beside the defaults (`search.certify`), at a level."""

    level: float
    found: Claim | None = None  # the comparison that counts; None before one
    repeat_s: float | None = None  # the compute time of a repeat; None before one has begun


def last_word(connection: sa.Connection, study: StudyHead, level: float) -> LastWord:
    """The last word of a study with one objective, at this level."""
    special_rows = rows_of(connection, trials_of(study).where(special()).order_by(TRIAL.number))
    defaults = defaults_among(special_rows)
    if defaults is None:
        return LastWord(level)
    ranked = sa.select(sa.func.count()).where(TRIAL.study_id == study.id, RANKED)
    tried, sign = connection.scalar(ranked) or 0, sign_of(study.direction)
    found = Certificate(special_rows, defaults.number, sign, level, tried).last_word()
    took_s = [row.gpu_seconds for row in special_rows if row.repeats is not None]
    return LastWord(level, found, fmean(took_s) if took_s else None)


def _compared(
    connection: sa.Connection, study: StudyHead, most: int, where: str | None
) -> list[TrialRow]:
    """The first trials that `where` selects, at most `most` by what they have shown themselves, all
    repeats, and the trials that were repeated. No repeat changes the order of the others
    (`ranking.selection`), so that the first of all are among these."""
    of_study = _EACH.where(TRIAL.study_id == study.id)
    repeats = [row for _, row in _rows_by_study(connection, of_study.where(_is_repeat()))]
    repeated = {row.repeats for row in repeats if row.repeats is not None}
    selected = of_study.where(RANKED)
    if where:
        condition = compiled_for(connection, study, where, "--where")
        selected = selected.select_from(WITH_LATEST).where(condition)
    limit = most + len(repeated)
    in_order = selected.order_by(*_order(study.direction)).limit(limit)
    rows = [row for _, row in _rows_by_study(connection, in_order.where(TRIAL.violation == 0))]
    if len(rows) < limit:
        over_limits = in_order.where(TRIAL.violation > 0)
        rows += [row for _, row in _rows_by_study(connection, over_limits)]
    if repeated:
        of_these = selected.where(TRIAL.number.in_(numbered(repeated)))
        rows += [row for _, row in _rows_by_study(connection, of_these)]
    found = {row.number: row for row in [*repeats, *rows]}
    return list(found.values())


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
    """The best trial of each study with one direction, by the study's id; None without one. The
    rows of all studies are read at once, and not how far seeds move their values."""
    compared: defaultdict[int, dict[int, TrialRow]] = defaultdict(dict)
    for direction in ("minimize", "maximize"):
        for study_id, row in _rows_by_study(connection, _first_of_each(direction)):
            compared[study_id][row.number] = row
    with_first = set(compared)
    for statement in (_REPEATS, _REPEATED):
        for study_id, row in _rows_by_study(connection, statement):
            compared[study_id][row.number] = row
    found: dict[int, Ranked[TrialRow] | None] = {}
    for head in heads:
        if not head.has_best:
            continue
        if head.id in with_first:
            rows = compared[head.id].values()
            known = Ranking(rows, head.direction, head.metric, lambda _: NOTHING_KNOWN)
            ranked = rank(rows, head.direction, head.metric, known)
        else:  # nothing keeps the limits, or nothing can be ranked
            ranked = best_trials(connection, head, 1)
        found[head.id] = next(iter(ranked), None)
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
_is_repeated = sa.and_(TRIAL.study_id == _repeated.c.study_id, TRIAL.number == _repeated.c.repeats)
_REPEATED = _EACH.join_from(_repeated, trials, _is_repeated)


def _first_of_each(direction: str) -> sa.Select[Any]:
    """The first trial of each study with a direction, of those that keep its limits and were not
    repeated; of a study without such a trial a row of NULLs."""
    other = trials.alias("other")
    repeats_it = sa.and_(
        _is_repeat(_repeat),
        _repeat.c.study_id == other.c.study_id,
        _repeat.c.repeats == other.c.number,
    )
    eligible = sa.and_(
        other.c.study_id == STUDY.id,
        other.c.standing.is_not(None),
        other.c.violation == 0,
        ~sa.exists().where(repeats_it),
    )
    in_order = sa.select(other.c.number).where(eligible).order_by(*_order(direction, other))
    number = in_order.limit(1).scalar_subquery()
    is_first = sa.and_(TRIAL.study_id == STUDY.id, TRIAL.number == number)
    each = _EACH.join_from(studies, trials, is_first, isouter=True)
    return each.where(STUDY.direction == direction)
