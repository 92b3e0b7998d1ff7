"""Some trials of a running study in order, kept up to date as they change: however many there are,
a change costs about the same, and the first ones are at hand.
"""

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from hpsearch.domain.history import History
from hpsearch.domain.records import Trial

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
        self._clock, changed = self._history.changed_since(self._clock)
        self._keys += [None] * (len(self._history.trials) - len(self._keys))
        if len(changed) > len(self._ordered):
            self._read_all(changed)
            return
        for number in changed:
            before, now = self._keys[number], self._key(self._history.trials[number])
            if before == now:
                continue
            self._keys[number] = now
            if before is not None:
                del self._ordered[bisect.bisect_left(self._ordered, before)]
            if now is not None:
                bisect.insort(self._ordered, now)

    def _read_all(self, changed: list[int]) -> None:
        """Read most trials, as when a study is taken up."""
        for number in changed:
            self._keys[number] = self._key(self._history.trials[number])
        self._ordered = sorted(key for key in self._keys if key is not None)
