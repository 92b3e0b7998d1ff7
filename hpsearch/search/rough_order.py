"""Trials by their last recorded expectation, or else by their best value.

It is cheap, so it chooses the few of many trials that the forecast compares.
"""

import heapq
from collections.abc import Container, Iterable
from itertools import islice

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.in_order import InOrder
from hpsearch.search.worth import score_of


class RoughOrder:
    """The order of one study's trials."""

    def __init__(self, history: History, sign: float) -> None:
        self._history = history
        self._sign = sign
        self._leading = InOrder(history, self._leading_key)

    def first(self, count: int, numbers: Iterable[int]) -> list[int]:
        """The first few of some trials, in order."""
        return heapq.nsmallest(count, numbers, key=self._key_of)

    def leaders(self, count: int, among: Container[int]) -> list[int]:
        """The first few of all trials that may lead and that are among some, in order."""
        return list(islice((number for number in self._leading if number in among), count))

    def is_candidate(self, number: int) -> bool:
        """True if a trial may be the study's best one: it has a value, and is not a repeat."""
        return number in self._leading

    def _key_of(self, number: int) -> tuple[float, float, int]:
        trial = self._history.trials[number]
        value = trial.value if trial.expected is None else trial.expected
        return trial.violation, score_of(value, self._sign), number

    def _leading_key(self, trial: Trial) -> tuple[float, float, int] | None:
        usable = trial.state is not State.FAILED and trial.role is not Role.CONFIRM
        return self._key_of(trial.number) if usable and trial.value is not None else None
