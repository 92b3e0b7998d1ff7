"""What a worker says of an attempt in its log: how it begins and how it ends."""

from __future__ import annotations

import json
import os
import platform

from hpsearch.domain import events as ev
from hpsearch.executors.worker_config import WorkerConfig
from trials.descriptions.command import COMMAND
from trials.disk.log_file import LogFile


class Story:
    """The beginning and the end of an attempt, as lines of its log.

    Args:
        order: The attempt's.
        config: What is the same for all attempts of its study.
        log: Its log; None if it has none, and then nothing is written.
    """

    def __init__(self, order: ev.Launch, config: WorkerConfig, log: LogFile | None) -> None:
        self._order = order
        self._config = config
        self._log = log
        self.reached: float | None = None
        """The resource of its last report; None before the first one."""

    def begins(self, device: str) -> None:
        """It begins on a device."""
        order = self._order
        where = f"on {platform.node()}, {device}, process {os.getpid()}"
        self._note(f"trial {order.trial}, attempt {order.attempt} begins {where}")
        self._note(f"parameters: {json.dumps(dict(order.params), default=str)}")
        if order.resume_from:
            self._note(f"continues from {order.resume_from}")

    def ends(self, ending: ev.Finished | ev.Stopped | ev.Failed) -> None:
        """It has ended in this way. Why it was told to stop is known to its study alone."""
        unit = self._config.budget.unit.value
        at = "before its first report"
        if self.reached is not None:
            at = f"after its report at {self.reached:g} {unit}"
        match ending:
            case ev.Finished():
                self._note(f"ended {at}: {ending.why}")
            case ev.Stopped():
                why = "" if ending.why is None else f", {ending.why}"
                saved = "it has no checkpoint"
                if ending.checkpoint is not None:
                    saved = f"its state is saved in {ending.checkpoint}"
                self._note(f"told to stop {at}{why}; {saved}")
            case ev.Failed():
                # The last lines of a command are in its log already.
                is_new = ending.details and self._config.task.get("kind") != COMMAND.kind
                details = f"\n{ending.details.rstrip()}" if is_new else ""
                self._note(f"failed {at}, {ending.kind.value}: {ending.text}{details}")

    def _note(self, text: str) -> None:
        if self._log is not None:
            self._log.note(text)
