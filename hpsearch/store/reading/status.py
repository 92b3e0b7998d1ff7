"""The status of studies for `ls` and `status`, read without loading trials that are not shown."""

import enum
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Text, and_, func, literal, select

from hpsearch.domain.facts import SHARING, DecisionKind, GpuSharing, NextHour, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Decision, Request, StudyState, Trial
from hpsearch.search.ranking.selection import Ranked
from hpsearch.search.time_left import TimeLeft
from hpsearch.store.contents import columns_of
from hpsearch.store.reading.attempts import idle_seconds
from hpsearch.store.reading.best import best_of_each, best_trials
from hpsearch.store.reading.names import WITH_LATEST, latest
from hpsearch.store.reading.own_ends import OwnEnds, own_ends
from hpsearch.store.reading.queries import StudyHead, TrialRow, study_heads, study_requests
from hpsearch.store.reading.trust import spec_of
from hpsearch.store.schema import (
    ATTEMPT,
    DECISION,
    ENVIRONMENT,
    LIVE_ATTEMPT,
    STUDY,
    TRIAL,
    attempts,
    special,
    trials,
)

TIMED = 1_000
"""The trials that the time left is estimated from: of more, evenly spaced ones, with all that are
open now and all that were not drawn by the sampler. Also the attempts that tell of idle slots."""
SAMPLES = "samples_per_second"
GPU_USE = "gpu_utilization"  # the metric that says in which share of time a trial's GPU had work


class DrivenState(enum.StrEnum):
    """The state of a study for people: the recorded state, and whether anybody works on it."""

    RUNNING = "running"
    WAITING = "waiting"  # it runs, its trials are only asked for, and nobody has one
    ABANDONED = "abandoned"  # it runs by its record, but its driver died
    INTERRUPTED = "interrupted"
    FINISHED = "finished"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """True if nothing follows, unless the study gets more budget or another try."""
        return self in (DrivenState.FINISHED, DrivenState.FAILED)


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """A line of the budget."""

    name: str  # trials, gpu_seconds, wall_clock_seconds or cost
    used: float
    most: float | None  # none if the study sets no such limit


@dataclass(frozen=True, slots=True)
class DeviceLine:
    """The compute time and the cost of the attempts on one type of device."""

    device: str | None  # none where it is not known
    gpu_seconds: float
    cost: float | None  # none where no price of it is stated


@dataclass(frozen=True, slots=True)
class StudySummary:
    """A study in a line."""

    head: StudyHead
    trials: Mapping[State, int]  # by state, without runs of changed code; no state has 0
    gpu_seconds: float
    best: Ranked[TrialRow] | None
    budget: Sequence[BudgetLine] = ()  # what is used of each limit
    checkpoint_bytes: int | None = None  # of all trials; none if that was never reported
    revision_runs: int = 0  # the runs that test changes of code

    @property
    def ended(self) -> int:
        return sum(count for state, count in self.trials.items() if state.terminal)

    @property
    def state(self) -> DrivenState:
        if self.head.state is StudyState.RUNNING and self.head.driver is None:
            return DrivenState.WAITING if self.head.is_asked else DrivenState.ABANDONED
        return DrivenState(self.head.state)


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """An attempt that runs now."""

    trial: int
    attempt: int
    worker: str
    node: str | None
    device: str | None
    started: float
    resource: float
    value: float | None
    speed: float | None = None  # resource trained a second; None if that is not known yet
    gpu: float | None = None
    """The share of time in which its GPU had work, by its latest report; None without a GPU."""
    last_decision: str | None = None  # what was decided of its trial last, in words
    samples: float | None = None  # that it trains a second; None if it does not report that


@dataclass(frozen=True, slots=True)
class Failures:
    """Trials that failed the same way, with the latest of them as the example."""

    kind: str
    count: int
    trial: int
    text: str | None


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """The status of one study."""

    summary: StudySummary
    reserved_gpu_seconds: float  # held back for the attempts that are running
    trials_per_hour: float | None
    """Trials that ended, over the hours that drivers worked; None before the first has."""
    running: list[RunningAttempt]
    failures: list[Failures]
    requests: Sequence[Request] = ()  # what was asked of it while it ran, the oldest first
    time_left: TimeLeft | None = None
    """Says how long it will still take; None where no driver works on it."""
    held: Sequence[tuple[str, float, float | None]] = ()
    """The slot, start and end of the latest attempts of the driver that works on it."""
    aside: Sequence[Decision] = ()  # the latest that set a node aside, while a driver works on it
    devices: Sequence[DeviceLine] = ()
    sharing: Mapping[str, GpuSharing] = field(default_factory=dict)
    """For each type of GPU that trials share, how many do."""
    ends: OwnEnds | None = None  # of trials that did not end at their budget
    next_hour: NextHour | None = None  # as it was foretold last

    def idle_share(self, now: float) -> float | None:
        """The share of their time for which the slots of its driver waited; None without one."""
        attempts = [(slot, started, ended or now) for slot, started, ended in self.held]
        waited_s = sum(idle_seconds(attempts, now).values())
        held_s = waited_s + sum(ended - started for _, started, ended in attempts)
        return waited_s / held_s if held_s > 0 else None

    def seconds_left(self, now: float) -> float | None:
        """Seconds until it ends; None where that cannot be known."""
        if self.time_left is None:
            return None
        return self.time_left.seconds(self.summary.head.active_seconds, now)

    def seconds_left_between(self, now: float) -> tuple[float | None, float | None]:
        """The least and the most seconds that this means, nine times in ten."""
        left_s = self.seconds_left(now)
        if self.time_left is None or left_s is None:
            return None, None
        return self.time_left.between(left_s)


def list_studies(connection: Connection) -> list[StudySummary]:
    heads = study_heads(connection)
    counted = _counted(connection)
    best = best_of_each(connection, heads)
    return [_summary(head, counted[head.id], best.get(head.id)) for head in heads]


def study_summary(
    connection: Connection, study: StudyHead, ranked: Sequence[Ranked[TrialRow]] | None = None
) -> StudySummary:
    counted = _counted(connection, study.id)[study.id]
    if ranked is None and study.has_best:
        ranked = best_trials(connection, study, 1)
    best = ranked[0] if ranked and study.has_best else None
    return _summary(study, counted, best)


def study_status(
    connection: Connection, study: StudyHead, ranked: Sequence[Ranked[TrialRow]] | None = None
) -> StudyStatus:
    """The status of a study; `ranked` are its best trials where they were read already."""
    summary = study_summary(connection, study, ranked)
    hours = study.active_seconds / 3600
    attrs = _attributes(connection, study)
    reserved = select(func.sum(ATTEMPT.reserved_gpu_seconds)).where(
        ATTEMPT.study_id == study.id, LIVE_ATTEMPT
    )
    return StudyStatus(
        summary=summary,
        reserved_gpu_seconds=connection.scalar(reserved) or 0.0,
        trials_per_hour=summary.ended / hours if summary.ended and hours > 0 else None,
        running=_running(connection, study),
        failures=_failures(connection, study),
        requests=study_requests(connection, study),
        time_left=_time_left(connection, summary),
        held=_held(connection, study),
        aside=recent_decisions(connection, study, {DecisionKind.ASIDE}, 1) if study.driver else (),
        devices=_devices(connection, study),
        sharing=attrs.get(SHARING, {}),
        ends=own_ends(connection, study),
        next_hour=NextHour.of(attrs),
    )


def next_hour_of(connection: Connection, study: StudyHead) -> NextHour | None:
    return NextHour.of(_attributes(connection, study))


def _attributes(connection: Connection, study: StudyHead) -> Mapping[str, Any]:
    return connection.scalar(select(STUDY.system_attrs).where(STUDY.id == study.id)) or {}


def _devices(connection: Connection, study: StudyHead) -> list[DeviceLine]:
    """A line for each type of device, that with the most compute time first. None where one price
    holds for all and the latest attempts were on one type: the sum goes through all attempts."""
    budget = study.budget
    has_prices = budget is not None and isinstance(budget.cost_per_gpu_hour, dict)
    latest = select(ATTEMPT.device).where(ATTEMPT.study_id == study.id)
    latest = latest.order_by(ATTEMPT.trial.desc()).limit(TIMED)
    if not has_prices and len(set(connection.scalars(latest))) < 2:
        return []
    taken = func.sum(ATTEMPT.gpu_seconds).label("taken")
    wanted = select(ATTEMPT.device, taken).where(ATTEMPT.study_id == study.id)
    by_device = wanted.group_by(ATTEMPT.device).order_by(taken.desc(), ATTEMPT.device)
    lines = []
    for device, gpu_seconds in connection.execute(by_device):
        cost = None if budget is None else budget.cost_of([(device, gpu_seconds)])
        lines.append(DeviceLine(device, gpu_seconds, cost))
    return lines


def _held(connection: Connection, study: StudyHead) -> list[tuple[str, float, float | None]]:
    """The slots, starts and ends of the latest attempts since the study's driver began."""
    if study.driver is None or study.is_asked:
        return []
    of_study = ENVIRONMENT.study_id == study.id
    began = select(func.max(ENVIRONMENT.created)).where(of_study).scalar_subquery()
    wanted = select(ATTEMPT.worker, ATTEMPT.started, ATTEMPT.ended)
    which = (ATTEMPT.study_id == study.id) & (ATTEMPT.started >= began)
    latest_ones = wanted.where(which).order_by(ATTEMPT.trial.desc()).limit(TIMED)
    return [(row.worker, row.started, row.ended) for row in connection.execute(latest_ones)]


def _time_left(connection: Connection, summary: StudySummary) -> TimeLeft | None:
    study = summary.head
    spec = None if study.driver is None or study.is_asked else spec_of(study)
    if spec is None:
        return None
    which = TRIAL.study_id == study.id
    count = sum(summary.trials.values()) + summary.revision_runs
    if count > TIMED:
        some = TRIAL.number.in_(range(0, count, math.ceil(count / TIMED)))
        which &= some | special() | TRIAL.state.in_((State.QUEUED.value, State.RUNNING.value))
    values = ("value", "expected", "expected_deviation", "expected_low", "expected_high")
    wanted = ("number", "state", "role", "resource", "speed", "started", "ended")
    columns = [TRIAL[name] for name in (*wanted, *values)]
    in_order = select(*columns).where(which).order_by(TRIAL.number)
    found = {row.number: Trial(params={}, **row._mapping) for row in connection.execute(in_order)}
    wanted = ("trial", "number", "worker", "started", "ended", "start_resource", "gpu_seconds")
    more = ("start_up_seconds", "device", "slowest_pace", "gpus")
    columns = [ATTEMPT[name] for name in (*wanted, *more)]
    same = (ATTEMPT.study_id == TRIAL.study_id) & (ATTEMPT.trial == TRIAL.number)
    of_these = select(*columns).join_from(trials, attempts, same).where(which)
    device_of: dict[str, str | None] = {}
    for row in connection.execute(of_these.order_by(ATTEMPT.trial, ATTEMPT.number)):
        found[row.trial].attempts.append(Attempt(**row._mapping))
        device_of[row.worker] = row.device
    searched = next(int(line.used) for line in summary.budget if line.name == "trials")
    return TimeLeft(spec, list(found.values()), list(device_of.values()), searched)


def _summary(
    head: StudyHead, counted: Sequence[Any], best: Ranked[TrialRow] | None
) -> StudySummary:
    trials: Counter[State] = Counter()
    for row in counted:
        trials[row.state] += row.trials * (row.role is not Role.REVISION)
    revision_runs = sum(row.trials for row in counted) - trials.total()
    gpu_seconds = _sum(row.gpu_seconds for row in counted) or 0.0
    budget = _budget(head, counted, gpu_seconds)
    taken = _sum(row.checkpoint_bytes for row in counted)
    return StudySummary(head, +trials, gpu_seconds, best, budget, taken, revision_runs)


def _budget(head: StudyHead, counted: Sequence[Any], gpu_seconds: float) -> list[BudgetLine]:
    budget = head.budget
    most_trials = most_gpu_seconds = most_seconds = None
    if budget is not None:
        most_trials = budget.trials
        most_seconds = budget.wall_clock_s
        if budget.gpu_hours is not None:
            most_gpu_seconds = budget.gpu_hours * 3600
    searched = sum(row.trials for row in counted if row.role.of_search)
    limits = [
        BudgetLine("trials", searched, most_trials),
        BudgetLine("gpu_seconds", gpu_seconds, most_gpu_seconds),
        BudgetLine("wall_clock_seconds", head.active_seconds, most_seconds),
    ]
    if budget is not None and budget.cost_per_gpu_hour is not None:
        spent = _sum(row.cost for row in counted) or 0.0
        limits.append(BudgetLine("cost", spent, budget.cost))
    return limits


def _sum(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _counted(connection: Connection, study_id: int | None = None) -> defaultdict[int, list[Any]]:
    """The trials of one study, or all, by state and role, with sums of what they took."""
    keys = (TRIAL.study_id, TRIAL.state, TRIAL.role)
    taken = (TRIAL.gpu_seconds, TRIAL.cost, TRIAL.checkpoint_bytes)
    sums = [func.sum(each).label(each.name) for each in taken]
    counted = select(*keys, func.count().label("trials"), *sums).group_by(*keys)
    if study_id is not None:
        counted = counted.where(TRIAL.study_id == study_id)
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(counted):
        found[row.study_id].append(row)
    return found


def _running(connection: Connection, study: StudyHead) -> list[RunningAttempt]:
    same_trial = (ATTEMPT.study_id == TRIAL.study_id) & (ATTEMPT.trial == TRIAL.number)
    last_decision = (
        select(DECISION.why)
        .where(DECISION.study_id == study.id, DECISION.trial == TRIAL.number)
        .order_by(DECISION.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    attempt = ATTEMPT
    live = (
        select(
            *(attempt.trial, attempt.number.label("attempt"), attempt.worker, attempt.node),
            *(attempt.device, attempt.started, TRIAL.resource, TRIAL.value, TRIAL.speed),
            *(latest.c.metrics, last_decision.label("last_decision")),
        )
        .join_from(attempts, WITH_LATEST, same_trial)
        .where(attempt.study_id == study.id, TRIAL.state == State.RUNNING.value, LIVE_ATTEMPT)
        .order_by(attempt.worker, attempt.trial)
    )
    running = []
    for row in connection.execute(live):
        cells = dict(row._mapping)
        metrics = cells.pop("metrics") or {}
        running.append(
            RunningAttempt(**cells, gpu=metrics.get(GPU_USE), samples=metrics.get(SAMPLES))
        )
    return running


def recent_decisions(
    connection: Connection, study: StudyHead, kinds: Collection[DecisionKind], most: int
) -> list[Decision]:
    """The latest decisions of these kinds, the newest last."""
    of_kinds = (
        select(*columns_of(Decision))
        .where(DECISION.study_id == study.id, DECISION.kind.in_(kinds))
        .order_by(DECISION.id.desc())
        .limit(most)
    )
    rows = connection.execute(of_kinds).all()
    return [Decision(*row) for row in reversed(rows)]


def _failures(connection: Connection, study: StudyHead) -> list[Failures]:
    trial = TRIAL
    kind = func.coalesce(trial.error_kind, literal("error", Text), type_=Text)
    is_trial = trial.role != Role.REVISION.value
    of_state = and_(trial.study_id == study.id, trial.state == State.FAILED.value, is_trial)
    counted = select(kind, func.count(), func.min(trial.number), func.max(trial.number))
    rows = list(connection.execute(counted.where(of_state).group_by(kind)))
    latest = trial.number.in_([row[3] for row in rows])
    texts = select(trial.number, trial.error_text).where(trial.study_id == study.id, latest)
    text_of = {row.number: row.error_text for row in connection.execute(texts)}
    rows.sort(key=lambda row: (-row[1], row[2]))
    return [Failures(kind, count, last, text_of[last]) for kind, count, _, last in rows]
