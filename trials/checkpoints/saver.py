"""When a run saves, and what waits for it.

While saving is cheap, the training thread writes a checkpoint itself: it serialises, hashes,
flushes, and renames or uploads. If the last save took more than 1% of the time between two saves,
training only waits for a copy of all tensors in host memory, and a background thread writes the
checkpoint from that copy. The copy takes as much memory as the checkpoint until it is written: with
AdamW in fp32 12 bytes for each trained weight, and 4 more with `ema`. At most one save is in
flight: the next one waits for it, and raises what it raised.

A report names the newest checkpoint that is whole when the report is made. That may be the
checkpoint of the report before, so that a lost worker costs at most one more interval. To stop or
pause a run is to call `save`, which waits for the save in flight; the last report of a run waits as
well.
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
from trials.checkpoints.manifests import Label
from trials.checkpoints.weights import Weights, host_copy

log = logging.getLogger(__name__)

SHARE = 0.01
"""The share of the time that training may wait for its checkpoints."""
WORTH_S = 0.05
"""A save that takes less is never given to a thread: exact reports are worth more."""
STATE = "state.pt"
"""The file of everything except the model."""


@dataclass(frozen=True)
class Content:
    """What a checkpoint holds, as the run has it now: nothing is copied."""

    weights: Weights
    state: Mapping[str, Any]

    def copied(self) -> Content:
        """The same in host memory, whatever the run does next."""
        weights, state = host_copy((self.weights, self.state))
        return Content(weights, state)


class Saver:
    """Saves a run, in the background where that is worth it.

    Args:
        checkpoints: Where to save it.
        write: Writes weights into a folder, in any thread.
        every_steps: Also save between reports, whenever this many steps have passed.
        every_minutes: Also save between reports, whenever this many minutes have passed.
        clock: Seconds; only differences count.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        write: Callable[[Path, Weights], None],
        every_steps: int | None = None,
        every_minutes: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._checkpoints = checkpoints
        self._write = write
        self._every_steps = every_steps
        self._every_minutes = every_minutes
        self._clock = clock
        self._began = clock()
        self._cost_s = 0.0
        self._pool: ThreadPoolExecutor | None = None
        self._flight: Future[Path | str] | None = None
        self._newest: Path | str | None = None

    @property
    def between_reports(self) -> bool:
        """Whether it saves between reports too."""
        return self._every_steps is not None or self._every_minutes is not None

    def begun(self, stretch: str) -> Path | str | None:
        """What an earlier attempt saved before its first report, which no report names.

        Returns: None if there is nothing, or where only reports are saved.
        """
        if not self.between_reports:
            return None
        return self._checkpoints.newest_of(stretch)

    def due(self, step: int) -> bool:
        """Whether it is time to save between two reports."""
        steps, minutes = self._every_steps, self._every_minutes
        if steps is not None and step % steps == 0:
            return True
        if minutes is None:
            return False
        passed_s = self._clock() - self._began
        return passed_s >= minutes * 60

    def save(self, number: int, content: Content, best: bool, stretch: str) -> None:
        """Save `content`; the other arguments are those of a `Label`.

        Raises:
            OSError: This save, or the one in flight before it, could not be written.
        """
        self.join()
        label = Label(number, best, stretch, state=(STATE,))
        before, now = self._began, self._clock()
        self._began = now
        allowed_s = max(SHARE * (now - before), WORTH_S)
        if self._cost_s <= allowed_s:
            self._newest = self._save(content, label)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        copy = content.copied()
        self._flight = self._pool.submit(self._save, copy, label)

    def _save(self, content: Content, label: Label) -> Path | str:
        began = self._clock()
        draft = self._checkpoints.draft(lambda folder: self._fill(folder, content))
        path = self._checkpoints.commit(draft, label)
        self._cost_s = self._clock() - began
        return path

    def _fill(self, folder: Path, content: Content) -> None:
        self._write(folder, content.weights)
        torch.save(dict(content.state), folder / STATE)

    def newest(self) -> Path | str | None:
        """The newest checkpoint that is whole by now, without waiting; None before the first.

        Raises:
            OSError: The save in flight has failed.
        """
        if self._flight is not None and self._flight.done():
            self.join()
        return self._newest

    def join(self) -> Path | str | None:
        """Wait for the save in flight, and return the newest checkpoint.

        Raises:
            OSError: The save has failed.
        """
        if self._flight is not None:
            flight, self._flight = self._flight, None
            self._newest = flight.result()
        return self._newest

    def close(self) -> None:
        """Wait for the save in flight and end the thread. A failure is logged: the run is over."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=True)
        self._pool = None
        try:
            self.join()
        except Exception as failure:  # noqa: BLE001 - whatever a writer raises in its thread
            log.warning("the last checkpoint could not be written: %s", failure)
