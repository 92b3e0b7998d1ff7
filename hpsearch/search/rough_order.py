"""Trials by their last recorded expectation, or else by their best value.

It is cheap, so it chooses the few of many trials that the forecast compares.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.search.worth import score_of


class RoughOrder:
    """The order of one study's trials; a trial is read again when it has changed."""

    def __init__(self, history: History, sign: float) -> None:
        self._history = history
        self._sign = sign
        self._clock = 0
        self._keys: dict[int, tuple[float, float, int]] = {}
        """By trial, its excess over the limits, its score and its number."""
        self._leading: set[int] = set()

    def first(self, count: int, numbers: Iterable[int]) -> list[int]:
        """The first few of some trials, in order."""
        self._read()
        return heapq.nsmallest(count, numbers, key=self._keys.__getitem__)

    def leaders(self, count: int, among: Container[int]) -> list[int]:
        """The first few of all trials that may lead and that are among some, in order."""
        self._read()
        return self.first(count, [number for number in self._leading if number in among])

    def may_lead(self, number: int) -> bool:
        """True if a trial may be the study's best one: it has a value, and is not a repeat."""
        self._read()
        return number in self._leading

    def _read(self) -> None:
        self._clock, changed = self._history.changed_since(self._clock)
        for number in changed:
            trial = self._history.trials[number]
            value = trial.value if trial.expected is None else trial.expected
            self._keys[number] = trial.violation, score_of(value, self._sign), number
            usable = trial.state is not State.FAILED and trial.role is not Role.CONFIRM
            if usable and trial.value is not None:
                self._leading.add(number)
            else:
                self._leading.discard(number)
