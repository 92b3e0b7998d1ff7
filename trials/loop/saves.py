"""Saving a run, in the foreground or in the background.

While saving is cheap, the training thread writes a checkpoint itself. If the last save took more
than 1% of the time between two saves, training only waits for a copy of all tensors in host memory,
and a background thread writes the checkpoint from that copy: with AdamW in fp32 12 bytes for each
trained weight, and 4 more with `ema`. At most one save is in flight: the next one waits for it, and
raises its error.

A report names the newest whole checkpoint. That may be the checkpoint of the report before, so that
a lost worker costs at most one more interval. `join`, and the last report of a run, wait for the
save in flight.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.manifests import STATE, Label, stretch_of
from trials.checkpoints.weights import Weights, host_copy
from trials.contract import Setup
from trials.devices.processes import Group
from trials.loop.position import Position
from trials.settings import Settings

log = logging.getLogger(__name__)

SHARE = 0.01
"""The share of the time that training may wait for its checkpoints."""
WORTH_S = 0.05
"""A shorter save stays in the foreground: exact reports are worth more."""


@dataclass(frozen=True)
class Content:
    """The content of a checkpoint, which is the run's own."""

    weights: Weights
    state: Mapping[str, Any]

    def copied(self) -> Content:
        """A copy in host memory."""
        weights, state = host_copy((self.weights, self.state))
        return Content(weights, state)


class RunSaves:
    """Saves one run. Rank 0 writes, and the other ranks wait for it.

    Args:
        setup: The run's folder, and the checkpoint to continue from.
        settings: When to save between reports, and how many checkpoints to keep.
        write: Writes weights into a folder, in any thread.
        group: The ranks.
        clock: Seconds; only differences count.
    """

    def __init__(
        self,
        setup: Setup,
        settings: Settings,
        write: Callable[[Path, Weights], None],
        group: Group,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._setup = setup
        self._every_steps = settings.save_every_steps
        self._write = write
        self._group = group
        self._clock = clock
        self._checkpoints = Checkpoints(setup.folder, settings.keep_checkpoints)
        self._began = clock()
        self._cost_s = 0.0
        self._pool: ThreadPoolExecutor | None = None
        self._flight: Future[Path | str] | None = None
        self._newest: Path | str | None = None
        self._flight_level: float | None = None
        self.newest_level: float | None = None
        """The level of the last report before the newest whole checkpoint; None before the first
        checkpoint."""
        self._saved: Position | None = None

    def source(self) -> Path | str | None:
        """The checkpoint that the run continues from; None if it starts afresh.

        An earlier attempt may have saved one before its first report, which no report names.
        """
        if self._setup.resume_from:
            return self._setup.resume_from
        if self._every_steps is None:
            return None
        first = stretch_of(self._setup, 0.0)
        return self._group.once(lambda: self._checkpoints.newest_of(first))

    def continue_from(self, source: Path | str, opened: Path | str) -> bool:
        """Find the best checkpoint that the run knows of, as `Checkpoints.continue_from`."""
        return self._group.once(lambda: self._checkpoints.continue_from(source, opened))

    def due(self, step: int) -> bool:
        """True if it is time to save between two reports."""
        return self._every_steps is not None and step % self._every_steps == 0

    def is_saved(self, position: Position) -> bool:
        """True if the last save was of this position."""
        return self._saved == position

    def save(self, position: Position, content: Callable[[], Content], best: bool) -> None:
        """Save the run as it is now, in the background if that is worth it.

        Raises:
            OSError: This save, or the one in flight before it, could not be written.
        """
        stretch = stretch_of(self._setup, position.reported)
        label = Label(position.step, best, stretch, state=(STATE,))
        self._group.once(lambda: self._begin(content(), label, position.reported))
        self._saved = position

    def _begin(self, content: Content, label: Label, level: float) -> None:
        self._landed()
        before, now = self._began, self._clock()
        self._began = now
        allowed_s = max(SHARE * (now - before), WORTH_S)
        if self._cost_s <= allowed_s:
            self._newest, self.newest_level = self._save(content, label), level
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        copy = content.copied()
        self._flight = self._pool.submit(self._save, copy, label)
        self._flight_level = level

    def _save(self, content: Content, label: Label) -> Path | str:
        began = self._clock()
        with self._checkpoints.drafting() as draft:
            self._write(draft, content.weights)
            torch.save(dict(content.state), draft / STATE)
        path = self._checkpoints.commit(draft, label)
        self._cost_s = self._clock() - began
        return path

    def _landed(self) -> Path | str | None:
        """Wait for the save in flight: the newest checkpoint."""
        if self._flight is not None:
            flight, self._flight = self._flight, None
            self._newest, self.newest_level = flight.result(), self._flight_level
        return self._newest

    def _whole(self) -> Path | str | None:
        """The newest whole checkpoint, without waiting; None before the first."""
        if self._flight is not None and self._flight.done():
            self._landed()
        return self._newest

    def named_by_report(
        self, level: float, is_last: bool
    ) -> tuple[Path | str | None, Path | str | None]:
        """The newest whole checkpoint, and the best until then.

        Raises:
            OSError: The save in flight has failed.
        """
        whole = self._landed() if is_last else self._whole()
        if whole is None:
            return None, None
        best = self._checkpoints.reported(level, whole)
        return whole, best

    def join(self, position: Position) -> Path | str | None:
        """Wait for the save in flight, and return the newest checkpoint.

        Raises:
            OSError: The save has failed.
        """
        whole = self._group.once(self._landed)
        if whole is not None and self._group.first:
            self._checkpoints.reported(position.reported, whole)
        return whole

    @property
    def best(self) -> Path | str | None:
        """The best whole checkpoint."""
        newest = self._whole()
        return None if newest is None else self._checkpoints.best_until(newest)

    def recorded(self, resource: float) -> None:
        """Remove checkpoints that are older than the report at `resource`, which is on record."""
        if self._group.first:
            self._checkpoints.recorded(resource)

    def close(self) -> None:
        """Wait for the save in flight and end its thread. A failure is logged: the run is over."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=True)
        self._pool = None
        try:
            self._landed()
        except Exception as failure:  # noqa: BLE001 - a writer may raise anything in its thread
            log.warning("the last checkpoint could not be written: %s", failure)
