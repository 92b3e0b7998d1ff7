"""The records of attempts: their environment, arithmetic and logs, the code that they ran and the
changes of it that were tested, and when slots waited.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from math import inf, isfinite
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.sql.functions import count
from sqlalchemy.sql.functions import max as sa_max
from sqlalchemy.sql.functions import min as sa_min

from hpsearch.domain.facts import IDLE_KEPT_S, CodeVerdict, Role
from hpsearch.domain.records import Environment, RevisionRun, Trial, Version, sign_of
from hpsearch.search.ranking.repeats import mean_of
from hpsearch.search.ranking.verdicts.evidence import lower_bound
from hpsearch.search.ranking.verdicts.referee import level_of
from hpsearch.store.contents import records, revisions_of
from hpsearch.store.reading.queries import StudyHead, TrialDetail, rows_of, trials_of
from hpsearch.store.schema import ATTEMPT, ENVIRONMENT, RANKED, TRIAL, VERSIONED
from trials.checkpoints import folders
from trials.running.arithmetic import Arithmetic
from trials.settings import some


def environments_of(connection: Connection, study: StudyHead) -> list[Environment]:
    return records(connection, Environment, ENVIRONMENT.study_id == study.id)


def versions_of(connection: Connection, study_id: int) -> list[Version]:
    return records(connection, Version, VERSIONED.study_id == study_id)


def revision_rows(connection: Connection, study: StudyHead) -> list[dict[str, Any]]:
    """All changes of a study's code, in order: the fields of each `Revision`, the digest of its
    patch, the GPU-seconds that its test took so far, and what the mean of its pairs is better by,
    with its lower bound; None where there are too few."""
    is_run = TRIAL.role == Role.REVISION.value
    values: dict[RevisionRun, float | None] = {}
    took: defaultdict[int, float] = defaultdict(float)
    for trial in records(connection, Trial, TRIAL.study_id == study.id, is_run):
        if trial.revision_run is not None:
            values[trial.revision_run] = trial.value
            took[trial.revision_run.revision] += trial.gpu_seconds
    rows, kept = [], 0
    for each in revisions_of(connection, study.id):
        gains = []
        for pair in range(each.pairs):
            sides = (RevisionRun(each.number, pair, is_changed) for is_changed in (False, True))
            before, now = (values.get(side) for side in sides)
            if before is not None and now is not None:
                gains.append(sign_of(study.direction) * (before - now))
        least = lower_bound(gains, 1 - level_of(each.number, kept))
        kept += each.verdict is CodeVerdict.KEEP
        more = {"digest": sha256(each.patch.encode()).hexdigest(), "gpu_seconds": took[each.number]}
        more |= {"better_by": mean_of(gains) if gains else None}
        more |= {"at_least": least if isfinite(least) else None}
        rows.append({**asdict(each), "verdict": each.verdict.value, **more})
    return rows


def changes(before: Environment, now: Environment) -> list[str]:
    """Changes of files, code and versions from one session to another, in phrases."""
    found = []
    if before.files is not None and now.files is not None:
        differing = sorted({name for name, _ in before.files.items() ^ now.files.items()})
        if differing:
            verb = "has" if len(differing) == 1 else "have"
            found.append(f"{some(differing)} {verb} changed")
    elif before.data_fingerprint != now.data_fingerprint:
        found.append("the files that the task names, or what these import, have changed")
    if before.revision != now.revision:
        found.append(f"the code is of git revision {now.revision} instead of {before.revision}")
    for name, was in before.packages.items():
        is_now = now.packages.get(name, "not installed")
        if was != is_now:
            found.append(f"{name} {is_now} instead of {was}")
    return found


@dataclass(frozen=True)
class Origins:
    """The sessions of a study's driver, by what they ran."""

    sessions: Sequence[Environment]
    """Those that began attempts, the oldest first: one for each in a row with the same code."""
    best: Environment | None
    """The latest session that trained the trial in question; None if none is recorded."""
    versions: Sequence[Version] = ()  # the study's, in order; empty where none is on record
    ran: Mapping[int, int] = field(default_factory=dict)
    """The number of trials with a value of each version."""
    begun: int = 1  # the version that the first attempt of the trial in question ran


UNKNOWN = Origins((), None)


def origins(connection: Connection, study: StudyHead, trial: int | None) -> Origins:
    known = environments_of(connection, study)
    of_study = ATTEMPT.study_id == study.id
    times = select(sa_min(ATTEMPT.started), sa_max(ATTEMPT.started))
    first, latest = connection.execute(times.where(of_study, ATTEMPT.trial == trial)).one()
    best = None if latest is None else latest_before(known, latest)
    versions = versions_of(connection, study.id)
    if len(versions) > 1:
        before = sum(version.created <= (first or 0.0) for version in versions)
        return Origins(known[:1], best, versions, _valued(connection, study), max(1, before))
    if len({code_of(each) for each in known}) < 2:
        return Origins(known[:1], best)
    found: list[Environment] = []
    for begun, end in zip(known, [*(each.created for each in known[1:]), inf], strict=True):
        ran = select(ATTEMPT.trial).where(
            of_study, ATTEMPT.started >= begun.created, ATTEMPT.started < end
        )
        is_other = not found or code_of(found[-1]) != code_of(begun)
        if is_other and connection.execute(ran.limit(1)).first() is not None:
            found.append(begun)
    return Origins(found, best)


def _valued(connection: Connection, study: StudyHead) -> dict[int, int]:
    """The number of trials that can be ranked, by version."""
    valued = select(TRIAL.version, count()).where(TRIAL.study_id == study.id, RANKED)
    rows = connection.execute(valued.group_by(TRIAL.version).order_by(TRIAL.version))
    return {row[0]: row[1] for row in rows}


def code_of(session: Environment) -> tuple[str | None, str | None]:
    """What tells the code and data of a session from those of others."""
    return session.revision, session.data_fingerprint


def session_at(connection: Connection, study: StudyHead, time: float) -> Environment | None:
    """The environment of the latest session before a time, else of the first; None without one."""
    return latest_before(environments_of(connection, study), time)


def latest_before(sessions: Sequence[Environment], time: float) -> Environment | None:
    """The latest of the sessions that began before a time, else the first; None without one."""
    begun = [session for session in sessions if session.created <= time]
    return next(iter(begun[-1:] or sessions), None)


def recorded_arithmetic(connection: Connection, study: StudyHead, number: int) -> Arithmetic | None:
    """The arithmetic of a trial's first attempt since it last began; None if it is not recorded."""
    (trial,) = rows_of(connection, trials_of(study).where(TRIAL.number == number))
    of_trial = ATTEMPT.study_id == study.id, ATTEMPT.trial == number, ATTEMPT.number > trial.retried
    recorded = select(ATTEMPT.arithmetic).where(*of_trial, ATTEMPT.arithmetic.is_not(None))
    plain = connection.scalar(recorded.order_by(ATTEMPT.number).limit(1))
    return None if plain is None else Arithmetic.from_plain(plain)


def logs_of(study: StudyHead, detail: TrialDetail) -> list[str]:
    """The logs of a trial's attempts. Those in an object store are not checked for existence."""
    folder = study.checkpoints
    if folder is None:
        return []
    number = detail.trial.number
    logs = [str(folders.log_of(folder, number, int(each["number"]))) for each in detail.attempts]
    return logs if folders.is_url(folder) else [log for log in logs if folders.is_there(log)]


def idle_seconds(attempts: Iterable[tuple[str, float, float]], end: float) -> dict[str, float]:
    """Seconds for which each slot waited between its attempts, by their slot, start and end, and
    from its last one until `end` of their driver. All slots but one are given back after
    `IDLE_KEPT_S` seconds without work."""
    waited: dict[str, float] = {}
    last: dict[str, float] = {}
    for slot, started, ended in sorted(attempts, key=lambda attempt: attempt[1]):
        gap_s = started - last.get(slot, started)
        waited[slot] = waited.get(slot, 0.0) + max(0.0, gap_s)
        last[slot] = max(ended, last.get(slot, ended))
    for place, slot in enumerate(sorted(last, key=lambda slot: last[slot])):
        after_s = max(0.0, end - last[slot])
        waited[slot] += after_s if place == 0 else min(after_s, IDLE_KEPT_S)
    return waited
