"""What a study asks by repeats on fresh seeds: which trial is best, or if one beats the defaults.

A question says which repeats would help to answer it. What the budget allows, and when the search
waits for the answer, is decided elsewhere (`brain.confirmation`).
"""

from collections.abc import Iterable, Set
from typing import NamedTuple, Protocol

from hpsearch.domain.records import Trial

FURTHER = 4
"""A trial is repeated at most this multiple of what was promised, with what is left of a budget.
Four times as many repeats halve the width of an interval; more would hardly narrow it."""


class Turn(NamedTuple):
    """A trial whose repeat helps to answer."""

    trial: Trial
    is_due: bool
    """True if there is no answer without it, so that the search waits."""
    until: int = 1
    """The number of repeats without which it would answer nothing."""


class OpenQuestion(Protocol):
    """A question that repeats are to answer, as its repeats answer it by now."""

    @property
    def turns(self) -> list[Turn]:
        """What may be repeated next, the first one first; empty once there is nothing to ask."""

    @property
    def is_settled(self) -> bool:
        """True if it is answered as far as was promised, or waits for repeats that run."""

    @property
    def missing(self) -> int:
        """The number of promised repeats that are still to come."""

    @property
    def asked_about(self) -> Set[int]:
        """The trials whose repeats, also those from before, are part of what was promised."""

    def seed_for(self, trial: Trial, seeds: Iterable[int]) -> int:
        """The seed of a trial's next repeat, out of those of the study's repeats, in order."""
