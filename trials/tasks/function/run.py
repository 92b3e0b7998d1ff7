"""One call of a training function, in a thread that alternates with the code that iterates the
run."""

import logging
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from trials.contract import Finding, Item, Note, Report, Setup, TrialStopped
from trials.foreign import code_of, in_words
from trials.running.reported import numbers_among
from trials.script import in_trial
from trials.tasks.function.trial import FunctionCall, FunctionTrial, require_all_read

log = logging.getLogger(__name__)

POLL_S = 0.2
"""The longest wait for a report before the run hands control back to its worker."""
GRACE_S = 5.0
"""The time that the function of a closed run may take to end."""

Function = Callable[[Mapping[str, Any], FunctionTrial], object]


class FunctionRun:
    """One call of a training function (a `contract.Run`).

    The function's thread puts its reports, questions and notes into a queue, and None when the
    function has ended. After each it waits for `_go`. `connects` says whether several ranks are
    connected before the function is called."""

    def __init__(
        self,
        function: Function,
        params: Mapping[str, Any],
        setup: Setup,
        grace_s: float = GRACE_S,
        *,
        connects: bool = True,
    ) -> None:
        self.finished: str | None = None
        self._function, self._params = function, params
        self._total, self._grace_s = setup.budget.total, grace_s
        self._ranks, self._device, self._connects = setup.ranks, setup.device, connects
        self._call = FunctionCall(setup)
        if setup.ranks is not None:
            setup.ranks.require_equal("the parameters", {**params, "trial.seed": setup.seed})
        self._trial = FunctionTrial(replace(setup, params=params), self._call, self._hand_over)
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._go = threading.Semaphore(0)
        self._is_started = self._is_ended = False
        self._item: Item = None
        """The item that the function waits in; None while it runs."""
        self._error: BaseException | None = None
        self._returned: object = None
        self._has_reported = False

    def __iter__(self) -> Iterator[Item]:
        """The function's reports, questions and notes; None while it takes its time between two.

        A function that has reported the full budget may go on until it returns.
        """
        while self.finished is None and not self._call.stopping:
            self._let_go()
            while not self._is_next_here(POLL_S):
                yield None
                if self._call.stopping:
                    return
            if self._item is None:
                yield from self._end()
                return
            self._has_reported |= isinstance(self._item, Report)
            yield self._item

    def _let_go(self) -> None:
        if not self._is_started:
            self._is_started = True
            # A daemon: a function that never reports again must not keep the process alive.
            threading.Thread(target=self._train, name="training-function", daemon=True).start()
        elif self._item is not None:
            self._item = None
            self._go.release()

    def _is_next_here(self, timeout_s: float) -> bool:
        try:
            self._item = self._items.get(timeout=timeout_s)
        except queue.Empty:
            return False
        self._is_ended = self._item is None
        return True

    def _end(self) -> Iterator[Item]:
        error, self._error = self._error, None
        is_trained = self._call.is_trained
        may_stop = is_trained or not self._call.is_first
        if isinstance(error, SystemExit):
            if error.code not in (None, 0):
                what = f"the training function called sys.exit({code_of(error.code)})"
                raise RuntimeError(what) from error
        elif error is not None and not (may_stop and isinstance(error, TrialStopped)):
            self.finished = "raised"
            raise error
        self.finished = "budget used" if is_trained else "the function returned"
        returned = self._returned if isinstance(self._returned, Mapping) else {}
        metrics = numbers_among(returned) if self._call.is_first else {}
        self._returned = None
        if metrics and (self._has_reported or self._call.checkpoint is not None):
            yield Note(metrics=metrics)
        elif metrics:
            require_all_read(self._trial)
            yield self._call.report(self._total, metrics)

    def give(self, value: Any) -> None:
        self._call.given = value

    def save(self) -> Path | str | None:
        """The checkpoint of the report that the function waits in, if any."""
        return self._item.checkpoint if isinstance(self._item, Report) else None

    @property
    def best(self) -> Path | str | None:
        return self._call.best

    def recorded(self, resource: float) -> None:
        self._call.checkpoints.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        return self._call.history.findings()

    def close(self) -> bool:
        """Raise `TrialStopped` in the function and wait for its end; False if it continues."""
        self._call.stopping = True
        while self._is_started and not self._is_ended:
            self._let_go()
            if not self._is_next_here(self._grace_s):
                what = "the training function continues in the background until its next"
                log.warning("%s trial.report", what)
                return False
        self._call.close()
        error = self._error
        if error is not None and not isinstance(error, TrialStopped):
            log.warning("the stopped training function raised %s", in_words(error))
        return True

    # In the function's thread:

    def _train(self) -> None:
        try:
            with in_trial(self._trial), self._among_ranks():
                self._returned = self._function(self._params, self._trial)
        except BaseException as error:  # noqa: BLE001 - handed to the iterating thread, which raises it
            self._error = error
        self._items.put(None)

    def _among_ranks(self) -> AbstractContextManager[None]:
        if self._ranks is None:
            return nullcontext()
        return self._ranks.joined(self._device, connects=self._connects)

    def _hand_over(self, item: Item) -> None:
        self._items.put(item)
        self._go.acquire()
