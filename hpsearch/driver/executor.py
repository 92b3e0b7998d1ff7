"""The executor, as a driver uses it."""

from __future__ import annotations

from typing import Protocol

from hpsearch.domain import events as ev


class Executor(Protocol):
    """Runs attempts on slots.

    Commands for one slot are carried out in the order in which they were given. `(trial, attempt)`
    identifies an attempt. Repeating a command has no effect, and neither has a command for an
    attempt that the executor does not run, or does not run any more.

    A checkpoint that a report names stays until `recorded` says that a later report is in the
    database. If that call is lost, checkpoints that are no longer needed stay. The trial's next
    attempt removes them once a report of its own is on record.
    """

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt on its slot."""

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt continue."""

    def stop(self, order: ev.Stop) -> None:
        """End an attempt; where `save` is set, save first and answer with `Stopped`."""

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        """Say that the reports of an attempt up to `resource` are in the database.

        From now on, checkpoints that only earlier reports named may be removed. This may happen
        later, for example when the attempt reports next.
        """

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """The events in the order they happened; waits up to `timeout_s` for the first one."""
