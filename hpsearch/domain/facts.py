"""Types for what the program itself knows about a study or a trial.

None of it is kept under keys of attributes, which belong to Optuna, its samplers and the users.
Enumerations are written to databases, JSON and the command line as their values.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from pydantic import StrictBool, StrictFloat, StrictInt


class Role(enum.StrEnum):
    """Why a trial is there."""

    SEARCH = "search"
    """The sampler drew it."""
    DEFAULT = "default"
    """The task's default settings."""
    ENQUEUED = "enqueued"
    """It was asked for."""
    PROPOSED = "proposed"
    """Somebody asked for it while its study ran."""
    CONFIRM = "confirm"
    """It repeats another trial in full, on a fresh seed."""


class RequestKind(enum.StrEnum):
    """The kinds of request to a running study."""

    STOP = "stop"
    """End one of its trials."""
    PROPOSE = "propose"
    """Try a configuration next."""
    BUDGET = "budget"
    """Raise a limit."""
    INTERRUPT = "interrupt"
    """Save everything and end its driver; it can be resumed."""


class ErrorKind(enum.StrEnum):
    """Why a trial failed."""

    DIVERGED = "diverged"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"
    """A checkpoint could not be written. The trial did nothing wrong: it goes back to the queue."""
    TIMEOUT = "timeout"
    ERROR = "error"
    LOST = "lost"
    """Too many workers died under it."""

    @property
    def of_configuration(self) -> bool:
        """True if it is a fact about the configuration's region of the space, not about the machine
        or the code."""
        return self in (
            ErrorKind.DIVERGED,
            ErrorKind.OUT_OF_MEMORY,
            ErrorKind.TIMEOUT,
        )


class DecisionKind(enum.StrEnum):
    """The kinds of decision about a trial."""

    PROPOSE = "propose"
    """It is there because somebody asked for it."""
    START = "start"
    CONTINUE = "continue"
    PAUSE = "pause"
    PROMOTE = "promote"
    PRUNE = "prune"
    RETRY = "retry"
    FAIL = "fail"
    FINISH = "finish"
    DROP = "drop"
    """Its checkpoints are removed to free space."""


@dataclass(frozen=True, slots=True)
class Race:
    """The state of the race of a study's leading configurations."""

    given: tuple[StrictFloat | None, ...]
    """The limits of the budget (trials, GPU-hours, cost, wall-clock seconds; None for no limit) and
    the number of configurations asked for, when the race began."""
    first: StrictInt = 0
    """The first trial whose repeats count against what this budget promises."""
    begun: StrictBool = False
    """True if the search waits for the race: nothing but repeats starts while any are due."""


@dataclass(frozen=True, slots=True)
class EarlierTrial:
    """The evidence of one trial of an earlier study."""

    params: dict[str, Any]
    """The parameters that both studies search."""
    standing: StrictFloat
    """The standing in its own study, stretched as `curves.Warp` does it: 0 is the best, 2.4 the
    middle."""


@dataclass(frozen=True, slots=True)
class EarlierStudy:
    """The good configurations of an earlier study: evidence for a study that starts warm."""

    name: str
    """The study's."""
    trials: list[EarlierTrial]
    """The best first."""


FAILED = "hpsearch:failed"
"""Tells a sampler of Optuna's that a trial failed because of its configuration: this system
attribute of the frozen trial that it is shown holds the kind of failure. It is made from the record
and never stored."""
