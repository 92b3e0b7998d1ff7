"""One call of a training function, in a thread that takes turns with the code that iterates the
run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from trials.contract import Finding, Item, Note, Report, Setup, TrialStopped
from trials.script import in_trial
from trials.tasks.function.reported import metric_name, number_of
from trials.tasks.function.thread import idle_thread, taken_lock
from trials.tasks.function.trial import FunctionCall, FunctionTrial, require_all_read

log = logging.getLogger(__name__)

POLL_S = 0.2
"""How long the run waits for a report before it hands control back, so that a worker can look
around."""
GRACE_S = 5.0
"""How long a closed run waits for its function to end."""

Function = Callable[[Mapping[str, Any], FunctionTrial], object]


class FunctionRun:
    """One call of a training function (a `contract.Run`).

    The function's thread and the iterating one take turns with two locks: `_go` is released to let
    the function run, `_news` by the function's thread when there is a report, a question, a note,
    or the function's end.
    """

    def __init__(
        self, function: Function, params: Mapping[str, Any], setup: Setup, grace_s: float = GRACE_S
    ) -> None:
        self.finished: str | None = None
        self._function, self._params = function, params
        self._total, self._grace_s = setup.budget.total, grace_s
        self._call = FunctionCall(setup)
        self._trial = FunctionTrial(replace(setup, params=params), self._call, self._hand_over)
        self._go, self._news = taken_lock(), taken_lock()
        self._started = self._ended = self._waiting = False
        self._item: Item = None
        """The last item of the function's thread."""
        self._error: BaseException | None = None
        self._returned: object = None
        self._has_reported = False

    def __iter__(self) -> Iterator[Item]:
        """The function's reports, questions and notes; None while it takes its time between two of
        them.

        A function that has reported the full budget may go on until it returns.
        """
        while self.finished is None and not self._call.stopping:
            self._let_go()
            while not self._news.acquire(timeout=POLL_S):
                yield None
                if self._call.stopping:
                    return
            if self._ended:
                yield from self._end()
                return
            self._waiting = True
            item = self._item
            assert item is not None
            self._has_reported |= isinstance(item, Report)
            yield item

    def answer(self, value: Any) -> None:
        self._call.answer = value

    def save(self) -> Path | str | None:
        """The checkpoint that came with the report the function waits in; None if it saved none
        for it."""
        item = self._item
        if not self._waiting or not isinstance(item, Report):
            return None
        return item.checkpoint

    @property
    def best(self) -> Path | str | None:
        return self._call.best

    def recorded(self, resource: float) -> None:
        self._call.checkpoints.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        return self._call.history.findings()

    def close(self) -> bool:
        """Raise `TrialStopped` in the function and wait for its end, but not forever: False if it
        continues."""
        call = self._call
        call.stopping = True
        while self._started and not self._ended:
            if self._waiting:
                self._waiting = False
                self._go.release()
            if not self._news.acquire(timeout=self._grace_s):
                what = (
                    "the training function continues in the background until its next trial.report"
                )
                log.warning(what)
                return False
            self._waiting = not self._ended
        call.close()
        error = self._error
        if error is not None and not isinstance(error, TrialStopped):
            log.warning("the stopped training function raised %r", error)
        return True

    def _let_go(self) -> None:
        if not self._started:
            self._started = True
            idle_thread().run(self._in_thread)
        elif self._waiting:
            self._waiting = False
            self._go.release()

    def _end(self) -> Iterator[Item]:
        error, self._error = self._error, None
        is_trained = self._call.is_trained
        if isinstance(error, SystemExit):
            code = error.code
            if code not in (None, 0):
                raise RuntimeError(f"the training function called sys.exit({code!r})") from error
        elif error is not None and not (is_trained and isinstance(error, TrialStopped)):
            self.finished = "raised"
            raise error
        self.finished = "budget used" if is_trained else "the function returned"
        metrics = _metrics_in(self._returned)
        self._returned = None
        if metrics and (self._has_reported or self._call.checkpoint is not None):
            yield Note(metrics=metrics)
        elif metrics:
            require_all_read(self._trial)
            yield self._call.report(self._total, metrics)

    # In the function's thread:

    def _in_thread(self) -> threading.Lock:
        try:
            with in_trial(self._trial):
                self._returned = self._function(self._params, self._trial)
        except BaseException as error:  # noqa: BLE001 - handed to the iterating thread, which raises it
            self._error = error
        self._ended = True
        return self._news

    def _hand_over(self, item: Item) -> None:
        self._item = item
        self._news.release()
        self._go.acquire()


def _metrics_in(returned: object) -> dict[str, float]:
    found = {}
    for name, value in returned.items() if isinstance(returned, Mapping) else ():
        with suppress(ValueError):
            found[metric_name(name)] = number_of(str(name), value)
    return found
