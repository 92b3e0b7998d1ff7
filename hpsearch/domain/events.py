"""The events of a study, and the commands to an executor.

Events come from the executor; those of an attempt name it, so that events of one that is no longer
current can be recognised and dropped. The others are of slots. Commands go to the executor after
the transaction that decided them has committed; `(trial, attempt)` names each, and repeating one
does nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch.domain.facts import ErrorKind
from trials.contract import CheckpointSizes, Code, Finding


@dataclass(frozen=True, slots=True)
class SlotUp:
    """A slot is ready: a warm worker process with its share of a GPU."""

    slot: str
    node: str
    device: str
    gpus: float
    node_id: str = ""  # empty where work cannot be kept from it
    gpu_id: str = ""  # of the GPU that it shares with others; empty if it shares none
    most: int = 1  # slots that this GPU has room for


@dataclass(frozen=True, slots=True)
class SlotDown:
    """A slot is gone, with the attempt that ran on it."""

    slot: str
    why: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A slot has nothing to say: its attempt has said nothing since its last event."""

    slot: str


@dataclass(frozen=True, slots=True)
class OfAttempt:
    """An event or a command of an attempt."""

    trial: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Began(OfAttempt):
    """An attempt begins to train. Comes together with the first other event of the attempt."""

    arithmetic: Mapping[str, Any] = field(hash=False)
    """The arithmetic that it computes in (`trials.running.arithmetic.Arithmetic`)."""
    start_up_s: float | None = None  # from its order until it could train, if it got so far


@dataclass(frozen=True, slots=True)
class Reported(OfAttempt):
    """An attempt has measured itself; at or past its `until` it waits for a command."""

    resource: float
    metrics: Mapping[str, float]
    step: int | None = None
    elapsed: float | None = None
    checkpoint: str | None = None  # the newest whole checkpoint
    best: str | None = None  # the whole checkpoint of the best report
    sizes: CheckpointSizes | None = None  # the size of the checkpoints on the disk, if it is known
    saved_at: float | None = None  # the resource at `checkpoint`, if not at its first report
    is_last: bool = False  # its program ends here by itself: it waits for nothing


@dataclass(frozen=True, slots=True)
class Queried(OfAttempt):
    """An attempt needs an unnamed parameter, or the trials; it waits for an `Advance`."""

    name: str
    distribution: str
    """Its distribution, in Optuna's JSON; `trials.contract.HISTORY` for the trials."""


@dataclass(frozen=True, slots=True)
class Noted(OfAttempt):
    """An attempt has notes on its trial, beside its reports."""

    attributes: Mapping[str, Any] = field(hash=False)
    constraints: Mapping[str, float] = field(hash=False)
    """By name, how far the trial exceeds a limit of its own; 0 or less if it keeps it."""
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Measured after the last report, to which they are added."""
    kept: Mapping[str, Any] = field(default_factory=dict, hash=False)  # for its library


@dataclass(frozen=True, slots=True)
class Finished(OfAttempt):
    """An attempt ended by itself: its budget is used, it stopped improving, or gave itself up."""

    why: str = "budget used"
    checkpoint: str | None = None  # its best checkpoint, where it keeps one
    findings: tuple[Finding, ...] = ()
    sizes: CheckpointSizes | None = None
    pruned: bool = False  # true if it gave itself up, as not worth more training
    held_s: float | None = field(default=None, compare=False)  # from its order to its end


@dataclass(frozen=True, slots=True)
class Stopped(OfAttempt):
    """An attempt has stopped on request, its state saved where it could be."""

    resource: float | None = None
    checkpoint: str | None = None
    findings: tuple[Finding, ...] = ()
    why: str | None = None  # set if the request was not this study's
    best: str | None = None
    sizes: CheckpointSizes | None = None
    signalled: bool = False  # true if its worker got a SIGTERM, perhaps of its own code
    held_s: float | None = field(default=None, compare=False)  # from its order to its end


@dataclass(frozen=True, slots=True)
class Failed(OfAttempt):
    """An attempt ended by an error of the trial's own: it would happen again."""

    kind: ErrorKind
    text: str
    details: str = ""  # the traceback, where it was an exception
    findings: tuple[Finding, ...] = ()
    held_s: float | None = field(default=None, compare=False)  # from its order to its end


@dataclass(frozen=True, slots=True)
class Lost(OfAttempt):
    """An attempt is gone through no fault of the trial's: its worker or node died."""

    why: str


AttemptEvent = Began | Reported | Queried | Noted | Finished | Stopped | Failed | Lost
Event = SlotUp | SlotDown | Answered | AttemptEvent


@dataclass(frozen=True, slots=True)
class Launch(OfAttempt):
    """Start an attempt of a trial on a slot, and let it train to `until`."""

    slot: str
    params: Mapping[str, Any] = field(hash=False)
    seed: int
    until: float
    resume_from: str | None = None
    time_limit_s: float | None = None  # the attempt fails as a timeout past this many seconds
    arithmetic: Mapping[str, Any] | None = field(default=None, hash=False)  # of the trial so far
    memory_fraction: float | None = None  # of its GPU's memory; None for that of the slot
    code: Code | None = field(default=None, hash=False)  # None for that of the study's folder


@dataclass(frozen=True, slots=True)
class Advance(OfAttempt):
    """Let a waiting attempt train on to `until`, with the parameters that it has asked for."""

    until: float
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)  # values by name


@dataclass(frozen=True, slots=True)
class Stop(OfAttempt):
    """End an attempt; with `save` it saves its state first and sends a `Stopped`."""

    save: bool = False


@dataclass(frozen=True, slots=True)
class Avoid:
    """Keep workers away from a node, by its id and name, for so many seconds."""

    node_id: str
    node: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Fill:
    """Hold so many slots on each shared GPU of a type."""

    device: str
    slots: int


Command = Launch | Advance | Stop | Avoid | Fill
