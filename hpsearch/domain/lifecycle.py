"""The states of a trial, and the one table of moves between them."""

import enum

from hpsearch.domain.moves import MoveTable


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
        """True if the trial has ended; it changes only if its study continues after its end."""
        return self in (State.COMPLETE, State.PRUNED, State.FAILED)


MOVES = MoveTable(
    first=State.QUEUED,
    moves={
        State.QUEUED: {
            State.RUNNING: "a slot takes it",
            State.PRUNED: "the study ends before a slot is free",
        },
        State.RUNNING: {
            State.COMPLETE: "its budget is used, or it stopped improving",
            State.PAUSED: "waits at a rung for its turn",
            State.PRUNED: "the search or a person stops it",
            State.FAILED: "it diverged, ran out of memory or time, or raised",
            State.QUEUED: "its worker was lost or interrupted",
        },
        State.PAUSED: {
            State.RUNNING: "promoted to the next rung",
            State.PRUNED: "the study ends, a person stops it, or its checkpoint is gone",
            State.QUEUED: "somebody wants it trained in full",
        },
        State.COMPLETE: {},
        State.PRUNED: {
            State.PAUSED: "its study ended without it and has more budget now",
            State.QUEUED: "its study ended before a slot was free and goes on, or it is wanted",
        },
        State.FAILED: {
            State.QUEUED: "its node is set aside, its study gave up and goes on, or it is retried"
        },
    },
    last=frozenset(state for state in State if state.terminal),
)
"""Every change of a trial's state goes through this table."""
