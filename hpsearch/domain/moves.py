"""Tables of moves between states, by which alone the state of a trial or a study changes.

The diagrams in docs/architecture.md are made from the tables.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=enum.StrEnum)


class IllegalMove(AssertionError):
    """A bug: a move that its table does not list."""


@dataclass(frozen=True)
class MoveTable(Generic[S]):
    """The moves that are allowed."""

    first: S
    moves: Mapping[S, Mapping[S, str]]
    """For each state, the states that may follow it, with the cause of the move."""
    last: frozenset[S]

    def move(self, current: S, to: S, what: str = "") -> S:
        """Return `to` if it may follow, and raise IllegalMove about `what` if not."""
        if to not in self.moves[current]:
            raise IllegalMove(f"{current.value} -> {to.value} is not a legal move; {what}")
        return to

    def diagram(self) -> str:
        """The table as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.first.value}"]
        for state, moves in self.moves.items():
            lines += [f"    {state.value} --> {to.value}: {why}" for to, why in moves.items()]
            if state in self.last:
                lines.append(f"    {state.value} --> [*]")
        return "\n".join(lines)
