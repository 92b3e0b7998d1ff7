"""When a run saves, and who waits for it.

While it is cheap, the training thread writes a checkpoint itself: serialises, hashes, flushes, renames or uploads.
Where the last one took more than 1% of the time between two saves, training waits for no more than a copy of all
tensors in host memory, and a background thread writes the checkpoint from that. The copy takes as much memory as the
checkpoint - with AdamW in fp32 12 bytes a trained weight, 4 more with `ema` - until it is written. One save is in
flight at most: the next one waits for it, and raises what it raised.

A report names the newest checkpoint that is whole when it is made. That may be the one of the report before, so that
what a lost worker costs is one interval more at most. Whoever stops or pauses a run calls `save`, which waits for the
one in flight; the last report of a run waits as well.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trials.checkpoint import Checkpoints
from trials.contract import Setup
from trials.weights import Weights, host_copy

log = logging.getLogger(__name__)

SHARE = 0.01
"""The share of the time that training may wait for its checkpoints."""
WORTH_S = 0.05
"""A save that takes less is never handed to a thread: exact reports are worth more."""
STATE = "state.pt"
"""The file of everything but the model."""


@dataclass(frozen=True)
class Content:
    """What a checkpoint holds, as the run has it now: nothing is copied.

    Args:
        weights: The model's.
        state: Everything else that a run needs to go on.
    """

    weights: Weights
    state: Mapping[str, Any]

    def copied(self) -> Content:
        """The same in host memory, whatever the run does next."""
        return Content(*host_copy((self.weights, self.state)))


class Saver:
    """Saves a run, in the background where that is worth it.

    Args:
        checkpoints: Where to.
        write: Writes weights into a folder, in any thread.
        every_steps: Also save between reports, every so many steps.
        every_minutes: Also save between reports, after so many minutes.
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
        self._checkpoints, self._write, self._clock = checkpoints, write, clock
        self._every_steps, self._every_minutes = every_steps, every_minutes
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
        """What an earlier attempt has saved before its first report, which nobody has heard of; None where there is
        nothing, or only reports are saved.

        Args:
            stretch: The run's first.
        """
        return self._checkpoints.newest_of(stretch) if self.between_reports else None

    def due(self, step: int) -> bool:
        """Whether it is time to save between two reports."""
        if self._every_steps is not None and step % self._every_steps == 0:
            return True
        return self._every_minutes is not None and self._clock() - self._began >= self._every_minutes * 60

    def save(self, number: int, content: Content, best: bool, stretch: str) -> None:
        """Save `content`; the other arguments are those of `Checkpoints.commit`.

        Raises:
            OSError: This save, or the one in flight before it, could not be written.
        """
        self.join()
        before, self._began = self._began, self._clock()
        if self._cost_s <= max(SHARE * (self._began - before), WORTH_S):
            self._newest = self._save(number, content, best, stretch)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        self._flight = self._pool.submit(self._save, number, content.copied(), best, stretch)

    def _save(self, number: int, content: Content, best: bool, stretch: str) -> Path | str:
        began = self._clock()
        draft = self._checkpoints.draft(lambda folder: self._fill(folder, content))
        path = self._checkpoints.commit(draft, number, best, stretch)
        self._cost_s = self._clock() - began
        return path

    def _fill(self, folder: Path, content: Content) -> None:
        self._write(folder, content.weights)
        torch.save(dict(content.state), folder / STATE)

    def newest(self) -> Path | str | None:
        """The newest checkpoint that is whole by now, waiting for none; None before the first.

        Raises:
            OSError: The save in flight has failed.
        """
        if self._flight is not None and self._flight.done():
            self.join()
        return self._newest

    def join(self) -> Path | str | None:
        """Wait for the save in flight: the newest checkpoint.

        Raises:
            OSError: It has failed.
        """
        if self._flight is not None:
            flight, self._flight = self._flight, None
            self._newest = flight.result()
        return self._newest

    def close(self) -> None:
        """Wait for the save in flight and end the thread. One that fails now is told in the log: the run is over."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=True)
        failure = None if self._flight is None else self._flight.exception()
        if failure is not None:
            log.warning("the last checkpoint could not be written: %s", failure)
        self._pool = self._flight = None


def stretch(setup: Setup, reported: float) -> str:
    """Names the part of a run after the report at a level: equal for two attempts only if one can go on for the other.

    Args:
        setup: Its parameters, seed and budget count.
        reported: The level of the last report; 0 before the first.
    """
    told = json.dumps([dict(setup.params), setup.seed, repr(setup.budget)], sort_keys=True, default=repr)
    return f"{hashlib.sha256(told.encode()).hexdigest()[:16]} after {reported:.17g}"
