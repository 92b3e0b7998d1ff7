"""News of a study for a tracker, and what a tracker does with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpsearch.domain.records import StudyRecord, StudyState, Trial


@dataclass(frozen=True)
class Point:
    """The metrics of a trial at one resource level."""

    step: int  # the level as a whole number; the same level always has the same one
    resource: float  # the level, in the unit of the trial budget
    at: float  # the time of the report, in seconds since the epoch
    metrics: Mapping[str, float]  # by name; some may not be finite


@dataclass(frozen=True)
class StudyNews:
    """A study as it is now."""

    record: StudyRecord
    uid: str  # its id among all studies
    label: str  # a name for people that no other study has
    metric: str  # the name of the first objective
    unit: str  # the unit of resources, such as epochs
    done: int  # the number of its trials that have ended
    best_params: Mapping[str, Any]
    """The parameters of its best trial; empty with several objectives, or before there is one."""
    facts: Mapping[str, Any]  # everything known of it that changes, by name

    @property
    def has_ended(self) -> bool:
        return self.record.state in (StudyState.FINISHED, StudyState.FAILED)


@dataclass(frozen=True)
class TrialNews:
    """A trial as it is now, with the points that the tracker has not been sent."""

    trial: Trial
    points: Sequence[Point]  # the new points, in order
    step: int  # the step of its last point, sent before or not; 0 before the first
    is_over: bool  # true if nothing more is expected: it has ended, or its study has
    facts: Mapping[str, Any]  # everything known of it that changes, by name

    @property
    def run(self) -> str:
        """The name of its run among those of its study: its number, and after a retry the attempt
        with which it began again, as the run before has failed."""
        trial = self.trial
        return f"{trial.number}.{trial.retried + 1}" if trial.retried else str(trial.number)


def named(facts: Mapping[str, Any], between: str, *names: str) -> dict[str, Any]:
    """Some of the facts, or all, under names of this program, such as `hpsearch/value`."""
    wanted = names or tuple(facts)
    return {f"hpsearch{between}{name}": facts[name] for name in wanted if name in facts}


class Tracker:
    """An experiment tracker, for one study. Any method may raise what its library raises.

    One thread calls it. A thing that is sent again must not appear twice, as far as its library
    allows."""

    @property
    def target(self) -> str:
        """The place where the tracker keeps the study."""
        raise NotImplementedError

    def send_study(self, study: StudyNews) -> None:
        """Take in the study. Called before any of its trials, and again when it has changed."""
        raise NotImplementedError

    def send_trial(self, study: StudyNews, news: TrialNews) -> None:
        """Take in a trial that is new or has changed."""
        raise NotImplementedError

    def wants(self, news: TrialNews) -> bool:
        """True if it takes a trial in this state; else the trial is offered again when that
        changes."""
        return True

    def close(self) -> None:
        """End everything; nothing is sent afterwards."""
