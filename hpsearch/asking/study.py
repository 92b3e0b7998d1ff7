"""A study to ask for trials: `hpsearch.create(url, spec)` and `hpsearch.resume(url, name)`."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from hpsearch.asking.session import AskingSession, HeartbeatThread
from hpsearch.asking.transaction import Transaction
from hpsearch.asking.trial import AskedTrial, Metrics, ReportVerdict
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.errors import AttemptLost, HpsearchError, UserError
from hpsearch.store.heartbeats import Key
from hpsearch.store.owners import shown
from trials.foreign import in_words, text_of

FIRST_LOOK_S = 0.1
LONGEST_LOOK_S = 1.0
"""Pauses of a waiting process between two looks double from the first to the longest."""
OWN_TURN_S = 5.0  # after so long it looks anyway: nobody writes that a process has died
KINDS = (ErrorKind.ERROR, ErrorKind.DIVERGED, ErrorKind.OUT_OF_MEMORY, ErrorKind.TIMEOUT)
"""The kinds of failure that a process may report."""

log = logging.getLogger("hpsearch")


class AskedStudy:
    """A study whose trials are asked for. A context manager: it gives back the trials without a
    `tell`, which are asked for again.

    Several processes may ask the same study, each with an object of its own; the threads of one
    process may share one. `ended` is the reason why `ask` gave None; None before it did."""

    def __init__(self, session: AskingSession) -> None:
        self.name = session.name
        self.ended: str | None = None
        self._session = session
        self._open: dict[Key, AskedTrial] = {}
        self._heartbeats: HeartbeatThread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def ask(self) -> AskedTrial | None:
        """A trial to train now, new or continued; None once the budget is used, all is decided, or
        the study was stopped (see `ended`). Waits while only the reports of others can bring one.

        Raises:
            StudyHeld: A driver owns the study.
            UserError: Nothing is handed out before this very thread tells of a trial it holds.
        """
        while self.ended is None:
            trial, running, revision = self._look()
            if trial is not None:
                return trial
            if self.ended is None:
                self._refuse_waiting_for_itself(running)
                self._wait_for_news(revision)
        return None

    def ask_now(self) -> AskedTrial | None:
        """As `ask`, without waiting: None also while only the reports of others can bring one."""
        return self._look()[0] if self.ended is None else None

    def answer(self) -> None:
        """Do or refuse what was asked of the study."""
        self._refuse_closed()
        self._session.take(lambda transaction: None)

    def _look(self) -> tuple[AskedTrial | None, set[Key], int]:
        self._refuse_closed()
        trial, self.ended, running, revision = self._session.take(self._looked_for)
        return trial, running, revision

    def tell(
        self,
        trial: AskedTrial,
        metrics: Metrics | None = None,
        *,
        failed: str | BaseException | None = None,
        kind: str = ErrorKind.ERROR.value,
        interrupted: str | BaseException | None = None,
    ) -> None:
        """Say that a trial has ended. Does nothing more for one that a report has ended.

        Args:
            metrics: Its metrics at its full budget, unless they were reported. Without any it is
                complete with the reports that it has.
            failed: The reason why it cannot be trained, in words or as an exception. It is not
                asked for again.
            kind: The kind of the failure: error, diverged, out_of_memory or timeout. The search
                avoids regions where trials diverge, take too much memory or too long.
            interrupted: The reason why it was not trained to its end, through no fault of its own:
                it will be asked for again, and continues from its last checkpoint.

        Raises:
            AttemptLost: This process counted as dead, and the trial went on elsewhere.
            StudyHeld: A driver has taken the study over.
            UserError: It belongs to another study object, more than one of these is given, or one
                is not of its kind.
        """
        self._refuse_closed()
        self._refuse_stranger(trial)
        given = [each for each in (metrics, failed, interrupted) if each is not None]
        if len(given) > 1:
            what = "a trial ends in one way: give metrics, failed or interrupted"
            raise UserError(f"study.tell(trial {trial.number}): {what}")
        if trial.ended is not None:
            if given:
                what = f"trial {trial.number} has ended already: {trial.ended.why}"
                raise UserError(what, "ask for the next trial")
            return
        if metrics is not None:
            trial.report(trial.budget, metrics)
        elif failed is not None:
            text = _text_of("failed", failed)
            self._end(trial, ev.Failed(*trial.key, _kind_of(kind), text))
        elif interrupted is not None:
            why = _text_of("interrupted", interrupted)
            self._end(trial, ev.Stopped(*trial.key, why=why))
        else:
            self._end(trial, ev.Finished(*trial.key, why="told so by its process"))

    def close(self, why: str = "its process ended without telling it") -> None:
        """Give back the trials without a `tell`, and let go of the connection. `why` is for the
        record of those trials; raises UserError if it is not text."""
        if self._closed:
            return
        text = _text_of("why", why)
        self._closed = True
        try:
            for trial in list(self._open.values()):
                self._give_back(trial, text)
        finally:
            if self._heartbeats is not None:
                self._heartbeats.close()
            self._session.store.close()

    def __enter__(self) -> AskedStudy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.close(f"its process was interrupted by {_text_of('error', error or kind())}")

    def __del__(self) -> None:
        # Nobody can report its trials any more: this process hands them out again, or others do
        # once it gives no sign of life for them.
        for key in self._open:
            self._session.own_attempts.pop(key, None)
        if self._heartbeats is not None:
            self._heartbeats.end()

    def __repr__(self) -> str:
        return f"<study {self.name} in {self._session.store.display_url}, to ask>"

    # -------------------------------------------------------------------------- in a transaction

    def _looked_for(
        self, transaction: Transaction
    ) -> tuple[AskedTrial | None, str | None, set[Key], int]:
        """A trial, or the reason why there will be none; what runs, and the study's revision."""
        order = transaction.hand_out(shown(self._session.owner), socket.gethostname())
        trial = None if order is None else self._made(transaction, order)
        ended = None if trial is not None else self._ended_by_now(transaction)
        return trial, ended, transaction.running(), transaction.revision

    def _ended_by_now(self, transaction: Transaction) -> str | None:
        """The reason why there will be no trial any more; None if there may be one."""
        if transaction.stop_requested:
            return f"it was stopped: hpsearch stop {self.name}"
        brain = transaction.brain
        transaction.close_if_finished()
        if transaction.brain is None:
            study = transaction.history.study
            return study.reason or f"the study is {study.state.value}"
        return None if brain is None else brain.reason

    def _made(self, transaction: Transaction, order: ev.Launch) -> AskedTrial:
        attempt = transaction.history.trials[order.trial].attempts[-1]
        trial = AskedTrial(
            (order.trial, order.attempt),
            self._session.spec,
            params=order.params,
            seed=order.seed,
            resume_from=order.resume_from,
            resource=attempt.start_resource,
            report=self._report,
        )
        with self._lock:
            self._open[trial.key] = trial
            if self._heartbeats is None:
                self._heartbeats = HeartbeatThread(self._session)
        return trial

    def _report(
        self, trial: AskedTrial, resource: float, metrics: dict[str, float], checkpoint: str | None
    ) -> ReportVerdict:
        self._refuse_closed()
        return self._act(
            trial, lambda transaction: transaction.report(trial.key, resource, metrics, checkpoint)
        )

    def _end(self, trial: AskedTrial, event: ev.Finished | ev.Failed | ev.Stopped) -> None:
        self._act(trial, lambda transaction: transaction.end(event))

    def _act(self, trial: AskedTrial, act: Callable[[Transaction], ReportVerdict]) -> ReportVerdict:
        try:
            verdict = self._session.take(act)
        except AttemptLost as error:
            self._forget(trial, ReportVerdict(False, error.message))
            raise
        if not verdict:
            self._forget(trial, verdict)
        return verdict

    def _give_back(self, trial: AskedTrial, why: str) -> None:
        if trial.key not in self._session.own_attempts:
            return  # the transaction that made it has failed
        try:
            with suppress(AttemptLost):
                self._end(trial, ev.Stopped(*trial.key, why=why))
        except HpsearchError as error:
            # What ended the block is what its user must see.
            log.warning("trial %d was not given back: %s", trial.number, error.message)
        finally:
            self._session.own_attempts.pop(trial.key, None)  # the next transaction finds it

    def _forget(self, trial: AskedTrial, verdict: ReportVerdict) -> None:
        trial.ended = verdict
        self._session.own_attempts.pop(trial.key, None)
        with self._lock:
            self._open.pop(trial.key, None)

    # ------------------------------------------------------------------------------------ waiting

    def _wait_for_news(self, since: int) -> None:
        """Wait for a commit after the revision `since`, but not for long."""
        session = self._session
        give_up = time.monotonic() + OWN_TURN_S
        pause_s = FIRST_LOOK_S
        while time.monotonic() < give_up:
            time.sleep(pause_s)
            pause_s = min(LONGEST_LOOK_S, pause_s * 2)
            if session.store.revision(session.study_id) != since:
                return

    def _refuse_waiting_for_itself(self, running: set[Key]) -> None:
        here = threading.get_ident()
        asked = self._session.own_attempts.copy()
        own = {key for key, thread in asked.items() if thread == here}
        if running and running <= own:
            numbers = ", ".join(str(number) for number, _ in sorted(own))
            raise UserError(
                "nothing can be handed out before one of these trials ends, and all were asked for "
                f"by this thread: {numbers}",
                "tell one of them first",
            )

    def _refuse_stranger(self, trial: object) -> None:
        if not isinstance(trial, AskedTrial):
            what = f"study.tell: {trial!r:.100} is not a trial"
            raise UserError(what, "give what study.ask() gave")
        if trial.ended is None and self._open.get(trial.key) is not trial:
            what = f"study.tell: trial {trial.number} was asked for of another study object"
            raise UserError(what, "tell it to that one")

    def _refuse_closed(self) -> None:
        if self._closed:
            raise UserError(
                f"study {self.name} was closed", "ask, report and tell inside the `with` block"
            )


def _text_of(name: str, why: object) -> str:
    if isinstance(why, BaseException):
        return in_words(why)
    if not isinstance(why, str):
        raise UserError(f"{name} is of type {type(why).__name__}", "say why in words")
    return text_of(why)


def _kind_of(name: str) -> ErrorKind:
    known = [each.value for each in KINDS]
    if name not in known:
        what = f"study.tell: {name!r} is not a kind of failure"
        raise UserError(what, f"known are {', '.join(known)}")
    return ErrorKind(name)
