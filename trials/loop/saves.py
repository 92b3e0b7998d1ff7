"""Saving a run, in the foreground or in the background, and no more often than it is worth.

While saving is cheap, the training thread writes a checkpoint itself. If the last save took more
than 1% of the time between two saves, training only waits for a copy of all tensors in host memory,
and a background thread writes the checkpoint from that copy: with AdamW in fp32 12 bytes for each
trained weight, and 4 more with `ema`. At most one save is in flight: the next one waits for it, and
raises its error.

A run spends at most 5% of its time on saves that nothing needs yet, so the more runs share a slow
storage, the more rarely each of them saves. A save that comes sooner is left out. If it is the best
so far, its copy is kept in memory instead, until a better one replaces it, the time has come, or
the run is joined or closed.

A report names the newest whole checkpoint, which may be that of an earlier report. A lost worker
therefore costs at most forty times what a save takes, and two intervals between reports. `join`,
and the last report of a run, wait for all saves.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
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

SHARE = 0.01  # the share of the time that training may wait for its checkpoints
WRITING = 0.05  # the share of the time in which a run writes checkpoints that nothing needs yet
WORTH_S = 0.05
"""A shorter save is never left out and stays in the foreground: exact reports are worth more."""


@dataclass(frozen=True)
class Content:
    """The content of a checkpoint, which is the run's own until it is copied."""

    weights: Weights
    state: Mapping[str, Any]
    is_copy: bool = False

    def copied(self) -> Content:
        """A copy in host memory, of which one is enough."""
        if self.is_copy:
            return self
        weights, state = host_copy((self.weights, self.state))
        return Content(weights, state, is_copy=True)


@dataclass(frozen=True)
class _Save:
    """One save. `level`: the level of the last report before it."""

    content: Content
    label: Label
    level: float

    def copied(self) -> _Save:
        return replace(self, content=self.content.copied())


class RunSaves:
    """Saves one run, by rank 0 alone. `write`: writes weights into a folder, in any thread."""

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
        self._flight_level: float | None = None
        self._kept: _Save | None = None
        self._newest: Path | str | None = None
        self.newest_level: float | None = None
        """The level of the last report before the newest whole checkpoint; None without one."""
        self._saved: Position | None = None

    def source(self) -> Path | str | None:
        """The checkpoint that the run continues from; None if it starts afresh. An earlier attempt
        may have saved one before its first report, which no report names."""
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
        return self._every_steps is not None and step % self._every_steps == 0

    def is_saved(self, position: Position) -> bool:
        """True if this position is written, being written or kept."""
        return self._saved == position

    def save(
        self, position: Position, content: Callable[[], Content], best: bool, can_wait: bool = False
    ) -> None:
        """Save the run as it is now, in the background if that is worth it. `can_wait`: whether it
        may be kept or left out if the last save was a short time ago. Raises OSError if this save,
        or the one in flight before it, could not be written."""
        stretch = stretch_of(self._setup, position.reported)
        label = Label(position.step, best, stretch, state=(STATE,))
        begin = partial(self._begin, content, label, position.reported, can_wait)
        if self._group.once(begin):
            self._saved = position

    def _begin(
        self, content: Callable[[], Content], label: Label, level: float, can_wait: bool
    ) -> bool:
        """Write or keep a save. Returns False if it is left out."""
        if label.is_best:
            self._kept = None  # which was the best until now
        elif not can_wait:
            self._wrote_kept()
        elif self._is_early() or self._wrote_kept():
            return False
        self._landed()
        save = _Save(content(), label, level)
        if can_wait and self._is_early():
            self._kept = save.copied()
        else:
            self._write_out(save)
        return True

    def _is_early(self) -> bool:
        if self._flight is not None and not self._flight.done():
            return True
        passed_s = self._clock() - self._began
        return self._cost_s > max(WRITING * passed_s, WORTH_S)

    def _wrote_kept(self) -> bool:
        """Begin to write the save that is kept, if there is one. Returns whether there was."""
        kept, self._kept = self._kept, None
        if kept is None:
            return False
        self._landed()
        self._write_out(kept)
        return True

    def _write_out(self, save: _Save) -> None:
        before, now = self._began, self._clock()
        self._began = now
        allowed_s = max(SHARE * (now - before), WORTH_S)
        if self._cost_s <= allowed_s:
            self._newest, self.newest_level = self._commit(save), save.level
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        self._flight = self._pool.submit(self._commit, save.copied())
        self._flight_level = save.level

    def _commit(self, save: _Save) -> Path | str:
        began = self._clock()
        with self._checkpoints.drafting() as draft:
            self._write(draft, save.content.weights)
            torch.save(dict(save.content.state), draft / STATE)
        path = self._checkpoints.commit(draft, save.label)
        self._cost_s = self._clock() - began
        return path

    def _landed(self) -> Path | str | None:
        if self._flight is not None:
            flight, self._flight = self._flight, None
            self._newest, self.newest_level = flight.result(), self._flight_level
        return self._newest

    def _all_landed(self) -> Path | str | None:
        self._wrote_kept()
        return self._landed()

    def _whole(self) -> Path | str | None:
        """The newest whole checkpoint, without waiting; None before the first."""
        if self._flight is not None and self._flight.done():
            self._landed()
        return self._newest

    def named_by_report(
        self, level: float, is_last: bool
    ) -> tuple[Path | str | None, Path | str | None]:
        """The newest whole checkpoint, and the best until then. Raises OSError of a save."""
        whole = self._landed() if is_last else self._whole()
        if whole is None:
            return None, None
        best = self._checkpoints.reported(level, whole)
        return whole, best

    def join(self, position: Position) -> Path | str | None:
        """Write what is kept, wait for it, and return the newest checkpoint. Raises OSError."""
        whole = self._group.once(self._all_landed)
        if whole is not None and self._group.first:
            self._checkpoints.reported(position.reported, whole)
        return whole

    @property
    def best(self) -> Path | str | None:
        newest = self._whole()
        return None if newest is None else self._checkpoints.best_until(newest)

    def recorded(self, resource: float) -> None:
        """Remove checkpoints that are older than the report at `resource`, which is on record."""
        if self._group.first:
            self._checkpoints.recorded(resource)

    def close(self) -> None:
        """Write what is kept, and end the thread. A failure is logged: the run is over."""
        try:
            self._all_landed()
        except Exception as failure:  # noqa: BLE001 - a writer may raise anything in its thread
            log.warning("the last checkpoint could not be written: %s", failure)
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
