"""The messages between a worker and the process of its training code."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.contract import Finding, Item


@dataclass(frozen=True, slots=True)
class Begin:
    """Begins an attempt; the descriptors of its standard output and standard error follow."""

    task: bytes  # a `FunctionTask`, pickled: an error while it is unpickled is one of the attempt
    setup: bytes  # its `Setup`, pickled
    environment: Mapping[str, str]  # the worker's environment variables
    has_ranks: bool  # other processes train it, too
    stays: bool  # the process takes other attempts of this task


@dataclass(frozen=True, slots=True)
class Preload:
    """Imports a library ahead of the attempts that will need it."""

    library: str


@dataclass(frozen=True, slots=True)
class GoOn:
    """Lets the function train on, with the value that it has asked for, if any."""

    given: Any = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Lets checkpoints of earlier reports go, as `contract.Run.recorded`; `Done` answers."""

    resource: float


@dataclass(frozen=True, slots=True)
class Close:
    """Ends the attempt: the function is stopped if it has not ended. `Closed` answers."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The attempt can begin to train."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the function says; it waits for `GoOn`."""

    item: Item
    best: Path | str | None  # the checkpoint of the best report of the attempt so far
    library: str | None = None
    """The library that may be imported ahead of the next attempt; None for none."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The end of the function. `finished`: the reason, as of `contract.Run`. `error`: the error
    that it raised, as `carried` by it; None if it returned."""

    finished: str
    findings: tuple[Finding, ...] = ()
    best: Path | str | None = None
    error: BaseException | None = None
    was_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Died:
    """The process that was forked for an attempt has ended before it. `code`: its exit code, or
    minus the number of the signal that ended it."""

    code: int


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to `Recorded`, with its error, if any."""

    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """The attempt is over; `goes_on` if the process takes another one."""

    goes_on: bool
