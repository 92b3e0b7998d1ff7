"""The contract between a task and its caller. Standard library only.

A *task* is built once from the `task` part of a study file. It prepares data (once a node), and
starts *runs*: one run is one attempt to train one configuration. A run is an iterator: it trains,
and hands control back with None after every optimizer step, and with a `Report` at each evaluation.
The caller decides how far it goes, and may call `save` between any two steps.

Resources (how far a trial has trained) are floats in the unit of the trial's `Budget`.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


class Unit(enum.StrEnum):
    STEPS = "steps"
    EPOCHS = "epochs"
    SAMPLES = "samples"
    TOKENS = "tokens"
    SECONDS = "seconds"
    FOLDS = "folds"
    SEEDS = "seeds"


ROUNDS = (Unit.FOLDS, Unit.SEEDS)
"""Units of a trial that trains its configuration several times, each of which is a round."""
LENGTHS = tuple(unit for unit in Unit if unit not in ROUNDS)
"""Units of one training."""


@dataclass(frozen=True)
class Budget:
    """The length of a trial's training, and its evaluations on the way.

    Args:
        total: The horizon of every schedule, whatever rung the trial reaches.
        report_at: Ascending resource levels at which the trial evaluates and reports; the last one
            is `total`.
        each: The budget of each round where the trial trains in rounds (`trials.running.rounds`).
    """

    unit: Unit
    total: float
    report_at: tuple[float, ...]
    each: Budget | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.total > 0:
            raise ValueError(f"a trial budget of {self.total} {self.unit.value} trains nothing")
        levels = self.report_at
        ascends = all(low < high for low, high in itertools.pairwise(levels))
        if not levels or levels[0] <= 0 or levels[-1] != self.total or not ascends:
            what = f"report_at must ascend from above 0 to the total ({self.total}): {levels}"
            raise ValueError(what)


class Fold(NamedTuple):
    """A part of the training data, counted from 0, which a training is only measured on."""

    number: int
    of: int


@dataclass(frozen=True)
class Goal:
    metric: str
    maximize: bool


class Ranks(Protocol):
    """The processes that train one trial together, seen from one of them."""

    rank: int
    """This process's, from 0."""

    size: int
    """The number of ranks."""

    def broadcast(self, subject: str, decide: Callable[[], T]) -> T:
        """The result of rank 0's `decide`, on all ranks, or its error. Others get it through JSON,
        and a path as text."""

    def require_equal(self, what: str, value: object) -> None:
        """Raise a ValueError if a value is not the same here as on rank 0."""

    def joined(self, device: str, *, connects: bool) -> AbstractContextManager[None]:
        """The environment that torchrun sets and, if it `connects`, the process group."""


@dataclass(frozen=True)
class Code:
    """Code that differs from that of the study's folder.

    Args:
        commit: The git commit that it begins with.
        patches: What changes it, in order, with paths from the root of the work tree.
        harness: The SHA-256 of the files that measure it, by their paths.
    """

    commit: str
    patches: tuple[str, ...]
    harness: Mapping[str, str]


@dataclass(frozen=True)
class Setup:
    """The configuration of one run, and its surroundings.

    Args:
        params: Every setting of the run: the fixed ones and the searched ones, merged.
        seed: The trial's own seed; everything random in the run derives from it.
        folder: The path or URL for the trial's checkpoints; made on the first save.
        resume_from: The checkpoint to continue from, or None to start afresh.
        device: A torch device name, such as cpu or cuda:0.
        goal: The objective that decides on the best checkpoint; None without one. Built-in tasks
            may follow another metric, by the setting `monitor`.
        attempt: Counted from 1.
        log: The file for the output of the run's programs; None for standard error.
        number: The trial's number in its study; 0 without a study.
        goals: All objectives, `goal` first; empty without one.
        ranks: The processes that train it together; None where this one trains it alone.
        share: The part of the device's memory that it may take; 1 and more for all of it.
        fold: The fold of this training; None where the budget has no folds.
        code: The code that it runs; None for the code of the study's folder.
    """

    params: Mapping[str, Any]
    seed: int
    budget: Budget
    folder: Path | str
    resume_from: Path | str | None = None
    device: str = "cpu"
    goal: Goal | None = None
    attempt: int = 1
    log: Path | None = None
    number: int = 0
    goals: tuple[Goal, ...] = ()
    ranks: Ranks | None = None
    share: float = 1.0
    fold: Fold | None = None
    code: Code | None = None

    @property
    def objectives(self) -> tuple[Goal, ...]:
        """All goals, also where only the first one is given."""
        return self.goals or (() if self.goal is None else (self.goal,))


TRAINED_TO = "trained_to"
"""The attribute with how far a trial has trained, where its last report stands elsewhere."""
SAMPLES = "samples"
"""The name of results by sample among metrics, and in the attributes of a repeat."""
HISTORY = "history"
"""Asks for the name of the study and its trials, where a distribution would ask for a value."""


@dataclass(frozen=True)
class Question:
    """A parameter without a value, which only the study can draw.

    Args:
        distribution: In the JSON that Optuna writes distributions in; `HISTORY` asks for the name
            of the study and its trials instead.
    """

    name: str
    distribution: str


@dataclass(frozen=True)
class Note:
    """Facts about a trial, for people, beside its reports.

    Args:
        attributes: Values that JSON has.
        constraints: The excess over each limit of the trial; 0 or less if it keeps the limit.
        metrics: Measured after the last report, to which they are added.
        kept: Values that JSON has, which a library keeps with the trial for itself.
    """

    attributes: Mapping[str, Any] = field(default_factory=dict)
    constraints: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """The metrics of a run at one resource level.

    Args:
        resource: Equals an entry of `Budget.report_at` exactly where the task follows the budget's
            grid, so that trials can be compared at equal resource.
        step: Optimizer steps taken.
        elapsed: Seconds trained, over all attempts of the trial.
        checkpoint: The newest whole checkpoint: the state at this point or, while that is being
            saved, the one before.
        best: The whole checkpoint of the best report.
        saved_at: The resource at `checkpoint`; None where it is that of this report.
        is_last: The run ends here by itself, so that it cannot pause.
        samples: The results of all validation samples, in their order, whose mean is the objective;
            None if they are not known.
    """

    resource: float
    metrics: Mapping[str, float]
    step: int | None = None
    elapsed: float | None = None
    checkpoint: Path | str | None = None
    best: Path | str | None = None
    saved_at: float | None = None
    is_last: bool = False
    samples: Sequence[float] | None = None


Item = Report | Question | Note | None
"""None after a step."""


@dataclass(frozen=True, slots=True)
class CheckpointSizes:
    """The size of a trial's checkpoints on the disk, in bytes.

    Args:
        now: All of them.
        waiting: The part of a paused trial: its newest checkpoint and the weights of its best.
        ended: The part of an ended trial: the weights of its best checkpoint.
    """

    now: int
    waiting: int
    ended: int


class Severity(enum.StrEnum):
    """A finding is worth knowing, costs time or quality, or spoils the result."""

    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True)
class Finding:
    """A fact on a run's health, with the numbers that show it."""

    name: str
    evidence: str
    severity: Severity

    def as_plain(self) -> dict[str, str]:
        return {"name": self.name, "evidence": self.evidence, "severity": self.severity.value}


class Run(Protocol):
    """One attempt to train one configuration."""

    @property
    def finished(self) -> str | None:
        """The reason for the end ("budget used", "no improvement for 3 reports"); None before."""

    @property
    def best(self) -> Path | str | None:
        """The whole checkpoint of the best report; None if there is none."""

    def __iter__(self) -> Iterator[Item]:
        """Train: yields None after every optimizer step, and a Report at every level of the
        budget's grid. An `Asking` run may also yield Notes and Questions."""

    def save(self) -> Path | str | None:
        """Write a checkpoint of this moment and return its folder once it is whole; None if the
        task cannot."""

    def recorded(self, resource: float) -> None:
        """Remove checkpoints that only reports before `resource` named.

        Without this call a run keeps every checkpoint, because the process that continues it may
        only know of an old one.
        """

    def findings(self) -> tuple[Finding, ...]:
        """The findings on its health so far, the most severe first; empty for a healthy run."""

    def close(self) -> bool:
        """Release memory, files and threads. False while code of the run is still running: call it
        again."""


class Asking(Protocol):
    """A run that has questions."""

    def give(self, value: Any) -> None:
        """Give the value that the last Question asked for, before the run is iterated further."""


class Task(Protocol):
    """A training job, built from the `task` part of a study file."""

    metrics: frozenset[str] | None
    """The metrics of its reports; None if only a run knows them."""

    settings: Mapping[str, Setting] | None
    """Its settings, by name; None if it takes any."""

    def data_key(self, params: Mapping[str, Any]) -> str:
        """Name the prepared data that these settings need: equal keys share one copy."""

    def prepare(self, params: Mapping[str, Any]) -> Any:
        """Read and tokenise the data these settings need.

        The result pickles cheaply (flat numpy arrays), is shared between processes and must not be
        written to.
        """

    def start(self, setup: Setup, data: Any) -> Run:
        """Build a run, resumed from its checkpoint where `setup` names one."""


@runtime_checkable
class Rehearsed(Protocol):
    """A task that can measure a step before it trains."""

    def remarks(self, params: Mapping[str, Any], data: Any) -> list[str]:
        """Sentences on prepared data that may not be what its owner believes."""

    def rehearse(self, setup: Setup, data: Any) -> dict[str, float]:
        """Run one training step and one evaluation step on the longest batch.

        Returns: `step_seconds`, `evaluation_seconds`, `parameters`, `peak_memory_bytes`, the size
            of a checkpoint `checkpoint_bytes`, and of its weights `weights_bytes`; as far as known.
        """


@dataclass(frozen=True)
class Setting:
    """One setting of a task: its type, default and limits.

    Args:
        low, high: The smallest and the largest value.
        above: The value must be greater than this.
        word: One text allowed beside values of the type, such as auto.
        largest_of: Another setting. Its largest value in a study is also this one's where the study
            does not state it, so that trials of different values are measured alike.
    """

    name: str
    type: type
    default: Any
    about: str
    low: float | None = None
    above: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] | None = None
    nullable: bool = False
    word: str | None = None
    largest_of: str | None = None

    def problem_with(self, value: Any) -> str | None:
        """The problem of a value, as half a sentence; None if it has none."""
        if value is None:
            return None if self.nullable else "must have a value"
        if self.word is not None and isinstance(value, str):
            if value == self.word:
                return None
            return f"must be {self.word} or a number, not {value!r}"
        return self._problem_with_type(value) or self._problem_with_limits(value)

    def _problem_with_type(self, value: Any) -> str | None:
        if self.type is float:
            return _problem_with_number(value)
        is_bool = isinstance(value, bool)  # to Python also an int
        if isinstance(value, self.type) and is_bool == (self.type is bool):
            return None
        names = {bool: "true or false", int: "a whole number"}
        return f"must be {names.get(self.type, self.type.__name__)}, not {value!r}"

    def _problem_with_limits(self, value: Any) -> str | None:
        if self.choices is not None and value not in self.choices:
            choices = ", ".join(map(str, self.choices))
            return f"must be one of {choices}, not {value!r}"
        if self.low is not None and value < self.low:
            return f"must be at least {self.low}, not {value!r}"
        if self.above is not None and value <= self.above:
            return f"must be above {self.above}, not {value!r}"
        if self.high is not None and value > self.high:
            return f"must be at most {self.high}, not {value!r}"
        return None


def _problem_with_number(value: Any) -> str | None:
    if isinstance(value, str) and "e" in value.lower():
        return f"must be a number, not {value!r} (YAML reads 1e-4 as text; write 1.0e-4)"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"must be a number, not {value!r}"
    return None if math.isfinite(value) else f"must be a finite number, not {value!r}"


@dataclass(frozen=True)
class Problem:
    """A mistake in a task's part of a study file.

    Args:
        where: The key, dotted from the top of the study file, such as ``task.train``.
        what: The facts and, after a semicolon, the advice.
    """

    where: str
    what: str


class TaskError(Exception):
    """A task cannot be built or its data not used: the user's mistake, with every problem found."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{p.where}: {p.what}" for p in problems))
        self.problems = problems

    @classmethod
    def at(cls, where: str, what: str) -> TaskError:
        return cls([Problem(where, what)])

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskError, (self.problems,)


class Diverged(Exception):
    """The loss or a gradient is not finite."""


class ProgramFailed(Exception):
    """A program of a run did not do what it should.

    Args:
        details: The last lines that the program printed.
    """

    def __init__(self, what: str, details: str = "") -> None:
        super().__init__(what)
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        return ProgramFailed, (str(self), self.details)


class ProcessEnded(Exception):
    """The process of a training has ended before the training.

    Args:
        code: Its exit code, or minus the number of the signal that ended it.
        is_out_of_memory: The operating system has ended it because memory ran out.
    """

    def __init__(self, what: str, code: int, *, is_out_of_memory: bool = False) -> None:
        super().__init__(what)
        self.code, self.is_out_of_memory = code, is_out_of_memory

    @property
    def is_lost(self) -> bool:
        """It was ended from outside, or by a fault of compiled code, and is worth a retry."""
        return self.code < 0 and not self.is_out_of_memory

    def __reduce__(self) -> tuple[Any, ...]:
        again = partial(ProcessEnded, is_out_of_memory=self.is_out_of_memory)
        return again, (str(self), self.code)


class Pruned(Exception):
    """A run gives up its trial; the text says why."""


class TrialStopped(BaseException):
    """Raised inside a user's training function when its trial is stopped.

    Not an `Exception`, so that `except Exception` in training code does not catch it; `finally`
    blocks run.
    """


@dataclass(frozen=True)
class Failure:
    """The failure of a run, in words that fit in a table.

    Args:
        kind: diverged, out_of_memory, disk_full, timeout or error.
        details: A traceback.
    """

    kind: str
    text: str
    details: str = field(default="", compare=False)


class TrainingFailed(Exception):
    """An error of training code in another process, whose own type may be unknown here."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure

    def __reduce__(self) -> tuple[Any, ...]:
        return TrainingFailed, (self.failure,)
