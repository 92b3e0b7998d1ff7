"""Some trials of a running study in order, kept up to date as they change: however many there are,
a change costs about the same, and the first ones are at hand.
"""

import bisect
import heapq
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.worth import score_of

Key: TypeAlias = tuple[Any, ...]


class InOrder:
    """Trials of one study by a key, the smallest first; a trial is read again when it has changed.

    Args:
        key: The key of a trial, which ends with its number; None for a trial that does not count.
    """

    def __init__(self, history: History, key: Callable[[Trial], Key | None]) -> None:
        self._history = history
        self._key = key
        self._clock = 0
        self._keys: list[Key | None] = []  # by trial
        self._ordered: list[Key] = []

    def __len__(self) -> int:
        self._read()
        return len(self._ordered)

    def __iter__(self) -> Iterator[int]:
        """The numbers of the trials, in order."""
        self._read()
        return (key[-1] for key in self._ordered)

    def __contains__(self, number: int) -> bool:
        self._read()
        return number < len(self._keys) and self._keys[number] is not None

    @property
    def keys(self) -> Sequence[Any]:
        """The keys, ascending, until the next change."""
        self._read()
        return self._ordered

    def last(self, count: int) -> list[int]:
        """The last few trials, in order."""
        self._read()
        return [key[-1] for key in self._ordered[-count:]]

    def _read(self) -> None:
        trials, keys, ordered = self._history.trials, self._keys, self._ordered
        self._clock, changed = self._history.changed_since(self._clock)
        keys += [None] * (len(trials) - len(keys))
        if len(changed) > len(ordered):
            self._read_all(changed)
            return
        for number in changed:
            before = keys[number]
            now = self._key(trials[number])
            if before == now:
                continue
            keys[number] = now
            if before is not None:
                del ordered[bisect.bisect_left(ordered, before)]
            if now is not None:
                bisect.insort(ordered, now)

    def _read_all(self, changed: list[int]) -> None:
        for number in changed:
            self._keys[number] = self._key(self._history.trials[number])
        self._ordered = sorted(key for key in self._keys if key is not None)


class RoughOrder:
    """One study's trials by their last recorded expectation, or else by their best value: a cheap
    order, which chooses the few of many trials that the forecast compares."""

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
        usable = trial.state is not State.FAILED and trial.role.of_search
        usable = usable and not trial.out_of_space
        return self._key_of(trial.number) if usable and trial.value is not None else None
