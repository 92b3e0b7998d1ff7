"""The records of a study, as plain objects: one class for each table.

Times are seconds since the epoch (UTC). Resources are in the unit of the trial budget. A field is
declared here and nowhere else: the column, the rows in and out, what `--where` and `--sort` can
name, the columns of frames and the keys of JSON output follow from its name, its type and its
metadata. A new field needs a migration beside it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from hpsearch.domain.facts import (
    CodeVerdict,
    ConfirmationState,
    DecisionKind,
    EarlierStudy,
    ErrorKind,
    Interruption,
    RequestKind,
    Role,
)
from hpsearch.domain.lifecycle import State
from trials.contract import TRAINED_TO, Finding

if TYPE_CHECKING:  # Optuna takes longer to import than most commands take to answer
    from optuna.distributions import BaseDistribution


class StudyState(enum.StrEnum):
    """The state of a study."""

    RUNNING = "running"  # a driver works on it, or died working on it: the lease tells which
    INTERRUPTED = "interrupted"  # stopped before its end; `hpsearch resume` continues
    FINISHED = "finished"  # its budget is used, or nothing is left to try
    FAILED = "failed"  # its trials all failed the same way


class Outcome(enum.StrEnum):
    """The end of an attempt."""

    COMPLETE = "complete"
    PAUSED = "paused"
    PRUNED = "pruned"
    FAILED = "failed"
    LOST = "lost"
    """Its worker, node or driver died; the trial goes back to the queue while attempts remain."""
    INTERRUPTED = "interrupted"
    """It was asked to stop and saved its state; does not count against the trial."""


SHOWN = {"shown": True}
"""Metadata of a field that readings show; in `--where` too, unless it is a list or mapping."""
MOMENT = {"shown": True, "moment": True}
"""The same of a time, which `--where` also compares with dates."""
BIG = {"shown": True, "big": True}  # the same of a whole number that may need 64 bits


def shown(default: Any = None) -> Any:
    """A field that readings show, with its default."""
    return field(default=default, metadata=SHOWN)


NAME = {"is_name": True}
"""Metadata of a text that names files, too, and so has to be one component of a path."""
ELSEWHERE = {"elsewhere": True}
"""Metadata of a field that is not a column: its values are rows of another table."""

CONSTRAINT = "constraints:"
"""Begins the names of a trial's system attributes for its excess over limits, as in Optuna."""
IN_FULL = "in_full"
"""The system attribute of a trial that somebody wants trained in full: true if its study had
finished, so that nothing else goes on."""
RETRIED = "retried"
"""The system attribute of a trial that began again after it had failed: the number of its attempts
before that, which have left no reports."""
OUT_OF_SPACE = "out_of_space"
"""The system attribute of a trial whose configuration the study's space does not have any more: the
number of the version that left it out. It stays on record, and is neither ranked nor evidence."""
REVISION = "revision"
"""The system attribute of a trial that tests a change of code, a `RevisionRun`."""


class RevisionRun(NamedTuple):
    """One side of a pair of runs that test a change of code."""

    revision: int
    pair: int  # from 0
    is_changed: bool  # false of the base

    def __str__(self) -> str:
        side = "revision" if self.is_changed else "the base of revision"
        return f"{side} {self.revision}, pair {self.pair + 1}"


def sign_of(direction: str) -> float:
    """The factor that makes less of an objective better: -1 for ``maximize``, else 1."""
    return -1.0 if direction == "maximize" else 1.0


@dataclass(slots=True)
class StudyRecord:
    """A row of `studies`."""

    id: int
    name: str = field(metadata=NAME)
    spec: str
    """The study file as it was at the study's creation (YAML); empty for studies of Optuna."""
    directions: tuple[str, ...] = ("minimize",)  # minimize or maximize, for each objective
    state: StudyState = StudyState.RUNNING
    reason: str | None = None  # the reason for its end, for people
    interruption: Interruption | None = None  # what interrupted it; None while it is not
    created: float = 0.0
    ended: float | None = None
    active_seconds: float = 0.0  # of wall-clock time, over all its drivers
    user_attrs: dict[str, Any] = field(default_factory=dict)
    system_attrs: dict[str, Any] = field(default_factory=dict)
    uid: str | None = field(default=None, metadata=NAME)
    """Unique among the studies of all databases; None if nothing has its mark."""
    base: str | None = None  # the folder of the study file, where relative paths start
    checkpoints: str | None = None  # the study's own folder of checkpoints
    former_checkpoints: list[str] = field(default_factory=list)  # earlier folders of them
    step_scale: float = 1.0  # turns resources into Optuna's steps, which are whole numbers
    enqueued: list[dict[str, Any]] = field(default_factory=list)
    """Configurations asked for on the command line, in order, after those of the study file."""
    confirmation: ConfirmationState | None = None  # None before it has begun
    warm_start: list[EarlierStudy] = field(default_factory=list)  # fixed at its creation


@dataclass(slots=True)
class ReportRecord:
    """A row of `reports`: the metrics of a trial at one resource."""

    trial: int
    resource: float
    value: float | None  # the objective's metric; None when it was not a number
    metrics: dict[str, float]
    attempt: int | None = None
    step: int | None = field(default=None, metadata=BIG)  # optimizer steps taken
    elapsed: float | None = None  # seconds the trial has trained, over all its attempts
    created: float = 0.0


ASKED = "asked"
"""The device of an attempt that a user's own process runs, which alone reads its checkpoints."""


@dataclass(slots=True)
class Attempt:
    """A row of `attempts`: one execution of a trial on a worker."""

    trial: int
    number: int
    worker: str
    started: float
    start_resource: float = 0.0
    reserved_gpu_seconds: float = 0.0
    node: str | None = None
    device: str | None = None
    ended: float | None = None
    outcome: Outcome | None = None  # none while it is live
    gpu_seconds: float = 0.0
    note: str | None = None  # the last message of a lost or failed attempt
    arithmetic: dict[str, Any] | None = None  # as `trials.running.arithmetic.Arithmetic`
    slowest_pace: float | None = None  # most seconds for a unit of the budget, without start-up
    start_up_seconds: float | None = None  # that it held its slot before it trained
    gpus: float | None = None  # that it is charged for; None if that is not on record
    first_reserved_gpu_seconds: float | None = None
    """What was reserved for it before it started; None if that is not on record."""


_NO_ATTRS: dict[str, Any] = {}
_NO_FINDINGS: list[Finding] = []  # shared by all trials that have none: there may be very many


@dataclass(slots=True)
class Trial:
    """A row of `trials`: one configuration and its result."""

    number: int = field(metadata=SHOWN)
    state: State = field(metadata=SHOWN)
    params: dict[str, Any] = field(metadata=SHOWN)
    value: float | None = shown()  # the best so far; of a complete trial, its result
    expected: float | None = shown()
    """The value of the first objective that is expected of it in full, in the metric's own unit."""
    expected_deviation: float | None = shown()  # its standard deviation, in the same unit
    expected_low: float | None = shown()  # this and the next hold its true value nine times in ten
    expected_high: float | None = shown()
    resource: float = shown(0.0)  # the resource that it has trained for
    rung: int | None = shown()  # the index of the highest rung it has reached
    seed: int = field(default=0, metadata=BIG)
    gpu_seconds: float = shown(0.0)
    cost: float | None = shown()  # money, where the study states a price
    speed: float | None = shown()
    """Resource trained per second, over the latest attempt and beyond its start-up."""
    error_kind: ErrorKind | None = field(default=None, metadata=SHOWN)  # why it failed, if it did
    error_text: str | None = shown()
    checkpoint: str | None = shown()  # the folder it can continue from
    checkpoint_resource: float | None = None  # that it had trained for at that checkpoint
    created: float = field(default=0.0, metadata=MOMENT)
    started: float | None = field(default=None, metadata=MOMENT)
    ended: float | None = field(default=None, metadata=MOMENT)
    role: Role = field(default=Role.SEARCH, metadata=SHOWN)
    repeats: int | None = shown()  # of a confirmation, the number of the trial it repeats
    best_checkpoint: str | None = shown()  # of its best report; all that an ended trial keeps
    checkpoint_bytes: int | None = field(default=None, metadata=BIG)
    """The size of its checkpoints, once what it does not need any more is removed."""
    values: list[float] | None = field(
        default=None,
        metadata={"shown": True, "column": "objective_values"},  # SQL reserves the word
    )
    """All objectives, where there are several."""
    findings: list[Finding] = field(default_factory=lambda: _NO_FINDINGS)
    """Findings of its latest attempt about its health; replaced, never changed in place."""
    left_as: State | None = None  # the state in which it waited when its study ended without it
    forgiven: int = 0
    """The number of its first attempts that do not count: their node, or what was mended since, was
    the cause of how they ended."""
    version: int = shown(1)  # of the study, that its latest attempt ran
    distributions: dict[str, BaseDistribution] = field(default_factory=dict)
    """Shared by trials that have the same, and never changed in place."""
    user_attrs: dict[str, Any] = field(default_factory=lambda: _NO_ATTRS)
    system_attrs: dict[str, Any] = field(default_factory=lambda: _NO_ATTRS)
    """Both are replaced, never changed in place."""
    reports: dict[float, ReportRecord] = field(default_factory=dict, metadata=ELSEWHERE)
    """By resource."""
    attempts: list[Attempt] = field(default_factory=list, metadata=ELSEWHERE)
    """In order; attempt n is at index n - 1."""

    @property
    def seen_at(self) -> float | None:
        """The resource at which it first showed its value; None if it has several objectives."""
        if self.value is None or self.values is not None:
            return None
        reports = self.reports.items()
        return min((at for at, report in reports if report.value == self.value), default=None)

    @property
    def last(self) -> float | None:
        """The value of its last report; None if it has several objectives."""
        if self.values is not None or not self.reports:
            return None
        return self.reports[max(self.reports)].value

    @property
    def ended_at(self) -> float:
        """The resource that it has trained to, where its last report may not stand."""
        return float(self.system_attrs.get(TRAINED_TO, self.resource))

    @property
    def trains_from(self) -> float:
        """The resource that it trains on from: while it runs its own, else that of its checkpoint,
        where its next attempt begins."""
        if self.state is State.RUNNING:
            return self.resource
        if self.checkpoint is None:
            return 0.0
        return self.resource if self.checkpoint_resource is None else self.checkpoint_resource

    @property
    def trains_in_full(self) -> bool:
        """True if it is measured in full: the defaults as a yardstick, a repeat or test of code as
        evidence, and what somebody wants to be."""
        is_measured = self.role is Role.DEFAULT or not self.role.of_search
        return is_measured or IN_FULL in self.system_attrs

    @property
    def goes_on_alone(self) -> bool:
        """True if nothing but this trial goes on, until it is trained in full."""
        waits = self.state in (State.QUEUED, State.RUNNING)
        return waits and self.system_attrs.get(IN_FULL, False)

    @property
    def retried(self) -> int:
        """The number of its attempts before it began again, as it had failed; 0 if it did not."""
        return int(self.system_attrs.get(RETRIED, 0))

    @property
    def out_of_space(self) -> bool:
        """True if the study's space does not have its configuration any more."""
        return OUT_OF_SPACE in self.system_attrs

    @property
    def revision_run(self) -> RevisionRun | None:
        """The part of the test of changed code that it is; None if it is none."""
        found = self.system_attrs.get(REVISION)
        return None if found is None else RevisionRun(*found)

    @property
    def is_evidence(self) -> bool:
        """True if the search may learn from it: it lies in the space, and tests no other code."""
        return not self.out_of_space and self.role is not Role.REVISION

    @property
    def was_asked(self) -> bool:
        """True if its latest attempt was asked for."""
        return bool(self.attempts) and self.attempts[-1].device == ASKED

    @property
    def violation(self) -> float:
        """The excess over the study's limits; 0 if it keeps them all."""
        return violation_of(self.system_attrs)

    @property
    def arithmetic(self) -> dict[str, Any] | None:
        """The arithmetic of its first attempt since it last began, in which all compute."""
        recorded = (attempt.arithmetic for attempt in self.attempts[self.retried :])
        return next((each for each in recorded if each is not None), None)


def violation_of(system_attrs: Mapping[str, Any]) -> float:
    """The excess of a trial over limits, as a sum of shares of them; 0 if it keeps them all."""
    excess = 0.0
    for key in system_attrs:
        if key.startswith(CONSTRAINT):
            excess += max(0.0, float(system_attrs[key]))
    return excess


@dataclass(slots=True)
class Decision:
    """A row of `decisions`: a decision about a trial, and its reason."""

    trial: int
    kind: DecisionKind
    why: str
    resource: float = 0.0
    against: list[int] = field(default_factory=list)  # the nearest trials it was compared with
    created: float = 0.0


@dataclass(slots=True)
class Request:
    """A row of `requests`: a request to a study, and its result. Anybody may add one; only the
    study's driver changes it, in the commit of its effects."""

    id: int
    kind: RequestKind
    content: dict[str, Any]
    """Of `stop`: trial. Of `propose`: params and why. Of `budget`: the new limits, as the study
    file writes them. Of `interrupt`: nothing. Of `revise`: why, commit, patch and harness, as
    `Revision` has them."""
    origin: str  # the sender, for people
    created: float
    handled: float | None = None  # when the driver did or refused it; None while it waits
    refused: str | None = None  # the reason for a refusal; None if it was not refused
    trial: int | None = None  # the trial that it led to or changed


@dataclass(slots=True)
class Environment:
    """A row of `environments`: the environment of a driver's session."""

    created: float
    revision: str | None
    """The git revision of the folder that the study was started in; None outside a work tree."""
    packages: dict[str, str]
    device: str
    data_fingerprint: str | None = None
    files: dict[str, str] | None = None
    """The SHA-256 of each file of the task, by its path; None if they are not on record."""


@dataclass(slots=True)
class Version:
    """A row of `versions`: a study as it was from some time on, with the code that it ran."""

    number: int  # from 1, as it was begun
    created: float
    origin: str  # who began it, for people
    changes: list[str]  # what is not as in the version before, in phrases
    spec: str  # the study file
    revision: str | None = None  # as in `Environment`
    new_code: bool = False  # true if values before it may not compare with its own
    files: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of the files that do not change while it goes on, by their path."""


@dataclass(slots=True)
class Revision:
    """A row of `revisions`: a change of a command's code, and what its test has shown."""

    number: int  # from 1, as they were asked for
    created: float
    origin: str  # who asked for it, for people
    why: str
    commit: str  # the git commit of its base
    patch: str  # on that, and on those kept on it before
    harness: dict[str, str]
    """The SHA-256 of each file that measures it, by its path; the same in every one of its runs."""
    trial: int  # whose parameters it is tested with
    verdict: CodeVerdict = CodeVerdict.OPEN
    reason: str = "its test has not begun"
    evidence: float = 1.0  # the e-value that it is better than its base
    pairs: int = 0  # that are complete
    decided: float | None = None


def kept_before(before: Sequence[Revision], commit: str) -> list[Revision]:
    """The changes that the next one on a commit is tested on, by all before it."""
    return [each for each in before if each.verdict is CodeVerdict.KEEP and each.commit == commit]
