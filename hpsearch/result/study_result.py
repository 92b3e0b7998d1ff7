"""The result of a study as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpsearch.ranking.no_effect import NoEffect
from hpsearch.ranking.selection import Ranked, standing
from hpsearch.store.reading.queries import StudyHead, TrialRow
from hpsearch.store.reading.trust import StudyTrust


@dataclass(frozen=True)
class StudyResult:
    """The best trials of a study, and how sure it is that they are.

    Args:
        objectives: The names of its metrics, with the direction of each.
        ranked: The best trials, best first; with several objectives those that no other beats.
        seen_at: The resource at which trials first showed their value, by their numbers.
        default: The trial of the task's default settings, with what comes of it when it is trained
            again as its expectation; None if there was none that can be ranked.
        trust: How far the rungs can be trusted.
        no_effect: Parameters that have made no difference, if any are known.
    """

    study: StudyHead
    objectives: Sequence[tuple[str, str]]
    ranked: Sequence[Ranked[TrialRow]]
    seen_at: Mapping[int, float]
    default: TrialRow | None
    trust: StudyTrust
    no_effect: NoEffect | None = None

    @property
    def best(self) -> Ranked[TrialRow] | None:
        """The best trial; None with several objectives, and before a trial has a value."""
        return self.ranked[0] if self.ranked and self.study.has_best else None

    @property
    def tied(self) -> list[int]:
        """The numbers of the trials that cannot be told from the best one."""
        if self.best is None:
            return []
        return [each.trial.number for each in self.ranked[1:] if each.tied]

    @property
    def unknown(self) -> list[int]:
        """The numbers of the trials that have trained too little to tell them from the best one."""
        if self.best is None:
            return []
        return [each.trial.number for each in self.ranked if each.unknown]

    @property
    def gain(self) -> float | None:
        """The distance by which the best trial is better than the default settings; below 0 if it
        is worse, None if it is not known.

        Both count by what comes of them when they are trained again.
        """
        best, default = self.best, self.default
        if best is None or best.again is None or default is None or best.trial.violation > 0:
            return None
        difference = best.again.mean - standing(default)
        return difference if self.study.direction == "maximize" else -difference
