"""Types of the program's own facts about a study or a trial, which have columns of their own.

Attributes belong to Optuna, its samplers and the users. Databases, JSON and the command line have
the values of enumerations.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypedDict

from pydantic import StrictBool, StrictFloat, StrictInt

IDLE_KEPT_S = 30.0
"""Seconds for which a study keeps slots without work; then it gives back all of them but one."""


class Role(enum.StrEnum):
    """The origin of a trial."""

    SEARCH = "search"  # the sampler drew it
    DEFAULT = "default"  # the task's default settings
    ENQUEUED = "enqueued"  # it was asked for
    PROPOSED = "proposed"  # somebody asked for it while its study ran
    CONFIRM = "confirm"  # it repeats another trial in full, on a fresh seed
    REVISION = "revision"  # it tests changed code, with the parameters of another trial

    @property
    def of_search(self) -> bool:
        """True if its trials are the search's own: no repeats, and no tests of changed code."""
        return self not in (Role.CONFIRM, Role.REVISION)


OF_SEARCH = tuple(role.value for role in Role if role.of_search)
"""The roles of the search's own trials, as databases have them."""


class RequestKind(enum.StrEnum):
    """The kinds of request to a running study."""

    STOP = "stop"  # end one of its trials
    PROPOSE = "propose"  # try a configuration next
    BUDGET = "budget"  # raise a limit
    INTERRUPT = "interrupt"  # save everything and end its driver; it can be resumed
    REVISE = "revise"  # test a change of its command's code


class CodeVerdict(enum.StrEnum):
    """The verdict on a change of a command's code."""

    OPEN = "not decided yet"
    KEEP = "keep"
    DISCARD = "discard"


class Interruption(enum.StrEnum):
    """What has interrupted a study."""

    BY_HAND = "by_hand"  # Ctrl-C
    SIGNAL = "signal"  # another one, such as SIGTERM
    REQUEST = "request"  # somebody asked for it
    DISK_FULL = "disk_full"  # no checkpoint could be written for long


class ErrorKind(enum.StrEnum):
    """The cause of a trial's failure."""

    DIVERGED = "diverged"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"  # a checkpoint could not be written; the trial goes back to the queue
    TIMEOUT = "timeout"
    ERROR = "error"
    LOST = "lost"  # too many workers died under it

    @property
    def of_configuration(self) -> bool:
        """True if the configuration is the cause, not the machine or the code."""
        return self in (ErrorKind.DIVERGED, ErrorKind.OUT_OF_MEMORY, ErrorKind.TIMEOUT)


class DecisionKind(enum.StrEnum):
    """The kinds of decision about a trial."""

    PROPOSE = "propose"  # somebody asked for it
    START = "start"
    CONTINUE = "continue"
    PAUSE = "pause"
    PROMOTE = "promote"
    PRUNE = "prune"
    RETRY = "retry"
    FAIL = "fail"
    FINISH = "finish"
    ASIDE = "aside"  # the node on which it failed is set aside for a while
    DROP = "drop"  # its checkpoints are removed to free space


@dataclass(frozen=True, slots=True)
class ConfirmationState:
    """How far the leading configurations of a study are confirmed."""

    given: tuple[StrictFloat | None, ...]
    """The limits of the budget (trials, GPU-hours, cost, wall-clock seconds; None for no limit) and
    the number of configurations tried first, when it began."""
    first: StrictInt = 0  # the first trial whose repeats count against what this budget promises
    search_waits: StrictBool = False  # nothing but repeats starts while any are due


@dataclass(frozen=True, slots=True)
class EarlierTrial:
    """The evidence of one trial of an earlier study."""

    params: dict[str, Any]  # the parameters that both studies search
    standing: StrictFloat
    """The standing in its own study, warped by `curves.Warp`: 0 is the best, 2.4 the middle."""


@dataclass(frozen=True, slots=True)
class EarlierRung:
    """How well a rung of an earlier study told the end."""

    share: StrictFloat  # its level, as a share of the full budget
    correlation: StrictFloat  # the rank correlation of the values there with those in full
    trials: StrictInt  # the trials that it was measured on


@dataclass(frozen=True, slots=True)
class EarlierStudy:
    """The good configurations of an earlier study: evidence for a study that starts warm."""

    name: str
    trials: list[EarlierTrial]  # the best first
    rungs: list[EarlierRung] = field(default_factory=list)
    """Those of which it is known how well they told the end."""


FAILED = "hpsearch:failed"
"""A system attribute of the frozen trials that samplers of Optuna are shown, and never stored: the
kind of failure of a trial that failed because of its configuration."""
MOST_ON_A_GPU = 16  # trials that share it
FILE_CHANGES = "file_changes"
"""The attribute of a study with the changes of its study file, each with its time."""
SHARING = "sharing"  # the system attribute of a study for the `GpuSharing` of each type of device


class GpuSharing(TypedDict):
    """The number of trials that share each GPU of a type, as found so far."""

    trials: int  # the best number so far
    most: int  # that may be tried
    is_final: bool


NEXT_HOUR = "hpsearch:next_hour"  # the system attribute of a study for its latest `NextHour`


@dataclass(frozen=True, slots=True)
class NextHour:
    """What another hour would bring, or what else a budget counts by (`budget.worth.per`)."""

    per: str
    gain: float  # that is expected, in the objective's own unit; more is better
    chance: float  # the probability of more than the next
    than: float
    trials: int  # that had ended when this was foretold
    below: int = 0  # how often in a row the gain was less than it is to be worth

    @property
    def what(self) -> str:
        """``another GPU hour``"""
        return f"another {self.per.replace('gpu_', 'GPU ')}"

    @classmethod
    def of(cls, system_attrs: Mapping[str, Any]) -> Self | None:
        """The one on record in a study's system attributes, if any is."""
        plain = system_attrs.get(NEXT_HOUR)
        return None if plain is None else cls(**plain)
