"""The checkpoints of one run: where it continues, which rank writes, and what a report names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.manifests import stretch_of
from trials.checkpoints.saver import Content, Saver
from trials.checkpoints.weights import Weights
from trials.contract import Setup
from trials.devices.processes import Group
from trials.loop.position import Position
from trials.settings import Settings


class RunSaves:
    """Saves one run. Rank 0 writes, and the other ranks wait for it."""

    def __init__(
        self,
        setup: Setup,
        settings: Settings,
        write: Callable[[Path, Weights], None],
        group: Group,
    ) -> None:
        self._setup = setup
        self._group = group
        self._checkpoints = Checkpoints(setup.folder, settings.keep_checkpoints)
        self._saver = Saver(
            self._checkpoints, write, settings.save_every_steps, settings.save_every_minutes
        )
        self._saved: Position | None = None

    def source(self) -> Path | str | None:
        """The checkpoint that the run continues from; None if it starts afresh."""
        if self._setup.resume_from:
            return self._setup.resume_from
        first = stretch_of(self._setup, 0.0)
        return self._saver.begun(first)

    def continue_from(self, source: Path | str, opened: Path | str) -> bool:
        """Let the best checkpoint be one that the run knows of, as `Checkpoints.continue_from`."""
        return self._group.once(lambda: self._checkpoints.continue_from(source, opened))

    def begin_anew(self) -> None:
        """Let the next report be the best, as `Checkpoints.begin_anew`."""
        self._group.once(self._checkpoints.begin_anew)

    def due(self, step: int) -> bool:
        """Whether it is time to save between two reports."""
        return self._saver.due(step)

    def is_saved(self, position: Position) -> bool:
        """Whether the last save was of this position."""
        return self._saved == position

    def save(self, position: Position, content: Callable[[], Content], best: bool) -> None:
        """Save the run as it is now, in the background where that is worth it.

        Raises:
            OSError: This save, or the one in flight before it, could not be written.
        """
        name = stretch_of(self._setup, position.reported)
        self._group.once(lambda: self._saver.save(position.step, content(), best, name))
        self._saved = position

    def named_by_report(
        self, level: float, is_last: bool
    ) -> tuple[Path | str | None, Path | str | None]:
        """What a report names: the newest checkpoint that is whole, and the best one until then."""
        whole = self._saver.join() if is_last else self._saver.newest()
        if whole is None:
            return None, None
        best = self._checkpoints.reported(level, whole)
        return whole, best

    def join(self, position: Position) -> Path | str | None:
        """Wait for the save in flight: the newest checkpoint, from which a run continues at
        `position`."""
        whole = self._group.once(self._saver.join)
        if whole is not None and self._group.first:
            self._checkpoints.reported(position.reported, whole)
        return whole

    @property
    def best(self) -> Path | str | None:
        """The checkpoint of the best report that is whole by now."""
        newest = self._saver.newest()
        return None if newest is None else self._checkpoints.best_until(newest)

    def recorded(self, resource: float) -> None:
        """Remove what only reports older than the one at `resource`, which is on record, have
        named."""
        if self._group.first:
            self._checkpoints.recorded(resource)

    def close(self) -> None:
        """Wait for the save in flight, and end its thread."""
        self._saver.close()
