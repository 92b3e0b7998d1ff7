"""The beginning and the end of an attempt, as lines of its log."""

from __future__ import annotations

import json
import os
import platform

from hpsearch.domain import events as ev
from hpsearch.domain.numbers import in_unit
from hpsearch.running.executors.worker_config import WorkerConfig
from trials.checkpoints.disk.log_file import LogFile
from trials.descriptions.command import COMMAND


def note_beginning(log: LogFile, order: ev.Launch, device: str) -> None:
    """Note the place and the parameters of an attempt that begins."""
    where = f"on {platform.node()}, {device}, process {os.getpid()}"
    log.note(f"trial {order.trial}, attempt {order.attempt} begins {where}")
    log.note(f"parameters: {json.dumps(dict(order.params), default=str)}")
    if order.resume_from:
        log.note(f"continues from {order.resume_from}")


def note_end(
    log: LogFile,
    config: WorkerConfig,
    reached: float | None,
    ending: ev.Finished | ev.Stopped | ev.Failed,
    left: str | None = None,
) -> None:
    """Note the end of an attempt, whose last report was at the resource `reached`, and what was
    `left` of it. Only its study knows the reason of a stop."""
    if left is not None:
        log.note(left)
    at = "before its first report"
    if reached is not None:
        at = f"after its report at {in_unit(reached, config.budget.unit.value)}"
    match ending:
        case ev.Finished():
            log.note(f"ended {at}: {ending.why}")
        case ev.Stopped():
            why = "" if ending.why is None else f", {ending.why}"
            saved = "it has no checkpoint"
            if ending.checkpoint is not None:
                saved = f"its state is saved in {ending.checkpoint}"
            log.note(f"told to stop {at}{why}; {saved}")
        case ev.Failed():
            # The last lines of a command are in its log already.
            is_new = ending.details and config.task.get("kind") != COMMAND.kind
            details = f"\n{ending.details.rstrip()}" if is_new else ""
            log.note(f"failed {at}, {ending.kind.value}: {ending.text}{details}")
