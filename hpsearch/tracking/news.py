"""What a tracker is told, as plain values, and what it must do with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState


@dataclass(frozen=True)
class Point:
    """The metrics of a trial at one resource level.

    Args:
        step: The level as a whole number; the same level always has the same one.
        resource: The level, in the unit of the trial budget.
        at: When it was reported, in seconds since the epoch.
        metrics: By name; not all of them need be finite.
    """

    step: int
    resource: float
    at: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class StudyNews:
    """A study as it is now.

    Args:
        uid: Tells it from all other studies.
        label: A name for people that no other study has.
        name: Its name.
        text: The study file.
        metric: The name of the first objective.
        unit: Of resources, such as epochs.
        created: When it began, in seconds since the epoch.
        ended: When it ended; None while it has not.
        state: Its state.
        reason: Why it ended; None while it has not.
        counts: How many trials are in each state.
        gpu_seconds: What its trials have used.
        best: The number of its best trial; None with several objectives, or before there is one.
        best_value: The value of that trial.
        best_params: Its parameters.
    """

    uid: str
    label: str
    name: str
    text: str
    metric: str
    unit: str
    created: float
    ended: float | None
    state: StudyState
    reason: str | None
    counts: Mapping[str, int]
    gpu_seconds: float
    best: int | None
    best_value: float | None
    best_params: Mapping[str, Any]

    @property
    def facts(self) -> dict[str, Any]:
        """What changes of it, by name; without what is not known."""
        facts = {
            "state": self.state.value,
            "reason": self.reason,
            "gpu_seconds": self.gpu_seconds,
            "best_trial": self.best,
            "best_value": self.best_value,
            **{f"trials_{state}": count for state, count in self.counts.items()},
        }
        return _known(facts)


@dataclass(frozen=True)
class TrialNews:
    """A trial as it is now, with the points that the tracker has not been sent.

    Args:
        number: Its number.
        state: Its state.
        params: Its parameters and their values.
        points: What is new, in order.
        step: That of its last point, sent before or not; 0 before the first.
        value: The best value of the objective so far.
        values: Of all objectives, where there are several.
        resource: How far it has trained.
        checkpoint: The checkpoint to use: its best, or else its newest; None if none is kept.
        gpu_seconds: What it has used.
        started: When it first began, in seconds since the epoch; None before.
        ended: When it ended; None while it has not.
        error: Why it failed; None if it did not.
        role: Whether it is one of the search or the repeat of another.
        repeats: The number of the trial that it repeats.
        seed: Its seed.
        is_over: Whether nothing is expected to follow: it has ended, or its study has.
        continues: The number of the trial that it continues under other parameters.
    """

    number: int
    state: State
    params: Mapping[str, Any]
    points: Sequence[Point]
    step: int
    value: float | None
    values: Sequence[float] | None
    resource: float
    checkpoint: str | None
    gpu_seconds: float
    started: float | None
    ended: float | None
    error: str | None
    role: str
    repeats: int | None
    seed: int
    is_over: bool
    continues: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What changes of it, by name; without what is not known."""
        facts = {
            "state": self.state.value,
            "value": self.value,
            "resource": self.resource,
            "gpu_seconds": self.gpu_seconds,
            "checkpoint": self.checkpoint,
            "error": self.error,
            "role": self.role,
            "repeats": self.repeats,
            "continues": self.continues,
            "seed": self.seed,
        }
        for i, value in enumerate(self.values or ()):
            facts[f"value_{i}"] = value
        return _known(facts)


class Tracker(Protocol):
    """An experiment tracker, for one study. Any method may raise what its library raises.

    It is called by one thread. What it is sent again must not appear twice, as far as its library
    allows that.
    """

    interval_s: float
    """The time between two sendings, in seconds."""

    def send_study(self, study: StudyNews) -> None:
        """Take in the study. Called before any of its trials, and again when it has changed."""

    def send_trial(self, study: StudyNews, trial: TrialNews) -> None:
        """Take in a trial that is new or has changed."""

    def wants(self, trial: TrialNews) -> bool:
        """Whether it takes a trial in this state; if not, it is asked again when that changes."""

    def unsafe(self) -> Collection[int]:
        """The numbers of trials that were sent, and that would be lost in part by a crash now."""

    def close(self) -> None:
        """End what was begun; nothing is sent afterwards."""


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
