"""What an objective of Optuna finds as `trial.study`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from optuna.study import StudyDirection

from trials.contract import Goal


class StudyOfTrial:
    """What a trial's worker knows of its study.

    Args:
        goals: The study's objectives.
    """

    def __init__(self, goals: Sequence[Goal]) -> None:
        self.directions = [_direction(goal) for goal in goals]

    @property
    def direction(self) -> StudyDirection:
        """The direction of the only objective."""
        (direction,) = self.directions
        return direction

    def __getattr__(self, name: str) -> NoReturn:
        what = f"trial.study.{name} is not known where a trial runs"
        raise AttributeError(
            f"{what}, only trial.study.directions; read the study with hpsearch.open(...).optuna()"
        )


def _direction(goal: Goal) -> StudyDirection:
    return StudyDirection.MAXIMIZE if goal.maximize else StudyDirection.MINIMIZE
