"""Trial states and their one transition table.

Every change of state in the program goes through `move`, and the diagram in docs/architecture.md is
made from the table by `diagram`.
"""

from __future__ import annotations

import enum


class State(enum.StrEnum):
    """The state of a trial."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"

    @property
    def terminal(self) -> bool:
        """True if nothing happens to the trial any more, unless its study continues after its
        end."""
        return self in (State.COMPLETE, State.PRUNED, State.FAILED)


MOVES: dict[State, dict[State, str]] = {
    State.QUEUED: {
        State.RUNNING: "a slot takes it",
        State.PRUNED: "the study ends before a slot is free",
    },
    State.RUNNING: {
        State.COMPLETE: "its budget is used, or it stopped improving",
        State.PAUSED: "waits at a rung for its turn",
        State.PRUNED: "the pruner stops it",
        State.FAILED: "it diverged, ran out of memory or time, or raised",
        State.QUEUED: "its worker was lost or interrupted",
    },
    State.PAUSED: {
        State.RUNNING: "promoted to the next rung",
        State.PRUNED: "the study ends without it",
    },
    State.COMPLETE: {},
    State.PRUNED: {
        State.PAUSED: "its study ended without it and has more budget now",
        State.QUEUED: "its study ended before a slot was free and has more budget now",
    },
    State.FAILED: {
        State.QUEUED: "its study gave up and is resumed",
    },
}
"""From each state, the states a trial may move to and what makes it."""


class IllegalMove(AssertionError):
    """A bug: a trial was to make a move that `MOVES` does not list."""


def move(current: State, to: State, story: str = "") -> State:
    """Return `to` if a trial may go there from `current`.

    Args:
        current: The trial's state now.
        to: The state wanted.
        story: What happened to the trial so far, for the error.

    Raises:
        IllegalMove: `MOVES` has no such move.
    """
    if to not in MOVES[current]:
        raise IllegalMove(
            f"{current.value} -> {to.value} is not a legal move{'; ' + story if story else ''}"
        )
    return to


def diagram() -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> queued"]
    for state, moves in MOVES.items():
        lines += [f"    {state.value} --> {to.value}: {why}" for to, why in moves.items()]
        if state.terminal:
            lines.append(f"    {state.value} --> [*]")
    return "\n".join(lines)
