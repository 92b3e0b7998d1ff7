"""One call of a training function in a process of its own, seen from its worker."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trials.contract import Finding, Item, ProcessEnded, Report
from trials.foreign import in_words
from trials.tasks.function.messages import (
    Begin,
    CallEnded,
    Close,
    Closed,
    Done,
    GoOn,
    Ready,
    Recorded,
    Said,
)
from trials.tasks.function.process import Processes
from trials.tasks.function.trial import FunctionTrial

log = logging.getLogger(__name__)

POLL_S = 0.2  # the longest wait for a report before the run hands control back to its worker
GRACE_S = 20.0
"""The time that the function of a closed run may take to end before its process is killed."""

Function = Callable[[Mapping[str, Any], FunctionTrial], object]


class FunctionRun:
    """One call of a training function (a `contract.Run`). The function says something, and waits
    until the run is iterated further. Raises Exception if the function cannot be called, or its
    checkpoint not be continued from."""

    def __init__(self, processes: Processes, begin: Begin, grace_s: float = GRACE_S) -> None:
        self.finished: str | None = None
        self.best: Path | str | None = None
        self._findings: tuple[Finding, ...] = ()
        self._processes, self._grace_s = processes, grace_s
        self._process = processes.take()
        self._item: Item = None
        """The item that the function waits in; None while it runs."""
        self._given: Any = None
        self._waits = False  # to go on
        self._recorded = 0.0
        self._is_closed = False
        self._library: str | None = None
        try:
            self._process.begin(begin)
            message = self._next()
            if isinstance(message, CallEnded):
                self._take_end(message)
            assert isinstance(message, Ready), message
        except BaseException:
            self.close()
            raise
        self._waits = True

    def __iter__(self) -> Iterator[Item]:
        """The function's reports, questions and notes; None while it takes its time between two.

        A function that has reported the full budget may go on until it returns. Raises what it
        raises, as `contract.TrainingFailed` where that is no error of the contract, and
        ProcessEnded."""
        while self.finished is None and not self._is_closed:
            self._let_go()
            while (message := self._hear()) is None:
                yield None
                if self._is_closed:
                    return
            if isinstance(message, CallEnded):
                self._take_end(message)
                return
            assert isinstance(message, Said), message
            self._item, self._waits, self.best = message.item, True, message.best
            self._library = message.library
            yield self._item

    def _let_go(self) -> None:
        if self._waits:
            self._item, self._waits = None, False
            self._process.say(GoOn(self._given))

    def _hear(self) -> Any:
        try:
            return self._process.hear(POLL_S)
        except ProcessEnded:
            self._is_closed = True
            self._process.kill()
            raise

    def _next(self) -> Any:
        while (message := self._hear()) is None:
            pass
        return message

    def _take_end(self, end: CallEnded) -> None:
        self.finished = end.finished
        self._findings, self.best, self._item = end.findings, end.best, None
        self._waits = False
        if end.error is not None:
            raise end.error

    def give(self, value: Any) -> None:
        self._given = value

    def save(self) -> Path | str | None:
        """The checkpoint of the report that the function waits in, if any."""
        return self._item.checkpoint if isinstance(self._item, Report) else None

    def recorded(self, resource: float) -> None:
        if resource <= self._recorded or self._is_closed:
            return
        if not self._waits and self.finished is None:
            return  # it runs; the next call says it
        self._recorded = resource
        self._process.say(Recorded(resource))
        answer = self._next()
        assert isinstance(answer, Done), answer
        if answer.error is not None:
            raise answer.error

    def findings(self) -> tuple[Finding, ...]:
        """Known once the function has ended, or the run is closed."""
        return self._findings

    def close(self) -> bool:
        """Raise `TrialStopped` in the function and wait for its end, or end its process."""
        if self._is_closed:
            return True
        self._is_closed = True
        self._process.say(Close())
        try:
            closed = self._closed()
        except ProcessEnded as end:
            if self.finished is None:
                log.warning("while its trial was stopped, %s", end)
            self._process.kill()
            return True
        if closed is None:
            log.warning(
                "the training function has not ended %g s after its trial; its process is killed",
                self._grace_s,
            )
            self._process.kill()
            return True
        self._processes.give_back(self._process, goes_on=closed.goes_on)
        if closed.goes_on and self._library is not None:
            self._process.preload(self._library)
        return True

    def _closed(self) -> Closed | None:
        give_up = time.monotonic() + self._grace_s
        while True:
            left_s = give_up - time.monotonic()
            message = self._process.hear(max(0.0, min(POLL_S, left_s)))
            match message:
                case None if left_s <= 0:
                    return None
                case Closed():
                    return message
                case CallEnded():
                    self._findings, self.best = message.findings, message.best
                    if message.error is not None and not message.was_stopped:
                        what = in_words(message.error)
                        log.warning("the stopped training function raised %s", what)
