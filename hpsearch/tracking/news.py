"""News of a study for a tracker, as plain values, and what a tracker does with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState


@dataclass(frozen=True)
class Point:
    """The metrics of a trial at one resource level.

    Attributes:
        step: The level as a whole number; the same level always has the same one.
        resource: The level, in the unit of the trial budget.
        at: When it was reported, in seconds since the epoch.
        metrics: By name; some may not be finite.
    """

    step: int
    resource: float
    at: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class StudyNews:
    """A study as it is now.

    Attributes:
        uid: Tells it from all other studies.
        label: A name for people that no other study has.
        name: Its name.
        text: The study file.
        metric: The name of the first objective.
        unit: The unit of resources, such as epochs.
        created: When it began, in seconds since the epoch.
        ended: When it ended; None while it has not.
        state: Its state.
        counts: The number of trials by state.
        gpu_seconds: Used by its trials.
        best_value: The value of its best trial; None with several objectives, or before there is
            one.
        best_params: The parameters of that trial.
        facts: Everything that changes of it, by name, as far as it is known.
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
    counts: Mapping[str, int]
    gpu_seconds: float
    best_value: float | None
    best_params: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def has_ended(self) -> bool:
        return self.state in (StudyState.FINISHED, StudyState.FAILED)

    @property
    def done(self) -> int:
        """How many trials have ended."""
        return sum(self.counts.get(state.value, 0) for state in State if state.terminal)


@dataclass(frozen=True)
class TrialNews:
    """A trial as it is now, with the points that the tracker has not been sent.

    Attributes:
        number: Its number.
        state: Its state.
        params: Its parameters and their values.
        points: The new points, in order.
        step: The step of its last point, sent before or not; 0 before the first.
        value: The best value of the objective so far, if it is finite.
        gpu_seconds: Used by it.
        started: When it first began, in seconds since the epoch; None before.
        ended: When it ended; None while it has not.
        role: Whether it is one of the search or the repeat of another.
        seed: Its seed.
        is_over: Whether nothing is expected to follow: it has ended, or its study has.
        facts: Everything that changes of it, by name, as far as it is known.
    """

    number: int
    state: State
    params: Mapping[str, Any]
    points: Sequence[Point]
    step: int
    value: float | None
    gpu_seconds: float
    started: float | None
    ended: float | None
    role: str
    seed: int
    is_over: bool
    facts: Mapping[str, Any]


class Tracker:
    """An experiment tracker, for one study. Any method may raise what its library raises.

    It is called by one thread. Anything that it is sent again must not appear twice, as far as its
    library allows that.
    """

    interval_s: float = 2.0
    """The time between two sendings, in seconds."""

    @property
    def target(self) -> str:
        """The place where the tracker keeps the study."""
        raise NotImplementedError

    def send_study(self, study: StudyNews) -> None:
        """Take in the study. Called before any of its trials, and again when it has changed."""
        raise NotImplementedError

    def send_trial(self, study: StudyNews, trial: TrialNews) -> None:
        """Take in a trial that is new or has changed."""
        raise NotImplementedError

    def wants(self, trial: TrialNews) -> bool:
        """True if it takes a trial in this state; else it is asked again when that changes."""
        return True

    def unsafe(self) -> Collection[int]:
        """The numbers of trials that were sent, and that would be lost in part by a crash now."""
        return ()

    def close(self) -> None:
        """End what was begun; nothing is sent afterwards."""
