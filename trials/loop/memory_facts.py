"""What processes learn about the micro-batches that fit in memory, and how it travels between them.

Facts are plain data: a worker reports its own, the study keeps them merged, and the next worker
starts with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Facts = Mapping[str, Sequence[int | None]]
"""By the kind of run: the largest micro-batch that is sure to fit, and the smallest that does not
(None: not seen)."""


@dataclass
class Known:
    """What is known about one kind of run."""

    fits: int = 0
    """The largest micro-batch that is sure to fit."""
    fails: int | None = None
    """The smallest micro-batch that does not fit; None if none has failed."""

    def fitted(self, size: int) -> None:
        """Note that a micro-batch of `size` samples of the longest has fitted."""
        self.fits = max(self.fits, size)

    def failed(self, size: int) -> None:
        """Note that a micro-batch of `size` samples has run out of memory."""
        self.fails = size if self.fails is None else min(self.fails, size)
        self.fits = min(self.fits, size - 1)

    def may_fit(self, size: int) -> bool:
        """Whether no smaller or equal micro-batch has failed."""
        return self.fails is None or size < self.fails


_known: dict[str, Known] = {}
"""What this process knows, by the kind of run."""


def known_of(kind: str) -> Known:
    """What this process knows about a kind of run; the caller may add to it."""
    return _known.setdefault(kind, Known())


def facts() -> dict[str, tuple[int, int | None]]:
    """What this process has learnt so far."""
    found = {}
    for kind, known in _known.items():
        if known.fits or known.fails:
            found[kind] = (known.fits, known.fails)
    return found


def learn(given: Facts) -> None:
    """Take over what other processes have learnt; where facts disagree, those that did not fit
    count."""
    for kind, (fits, fails) in given.items():
        known = known_of(kind)
        known.fitted(fits or 0)
        for size in (fails, known.fails):
            if size is not None:
                known.failed(size)
