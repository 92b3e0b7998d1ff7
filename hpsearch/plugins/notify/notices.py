"""Events that are worth a notice: a new best configuration, trouble, and the end of a study.

New bests are gathered, and so are lost workers: of each kind there is at most one notice a minute.
The end and other trouble are always sent at once. A thread delivers notices to a URL or a command:
the study never waits for them. The first failure is reported on stderr. Neither the URL nor the
arguments of the command are ever printed, since they may hold a secret.
"""

import base64
import enum
import functools
import http.client
import json
import logging
import os
import shlex
import shutil
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from hpsearch.brain.study import Study
from hpsearch.domain.facts import Interruption
from hpsearch.domain.history import Changes
from hpsearch.domain.numbers import in_unit
from hpsearch.domain.records import Outcome, StudyRecord, StudyState, Trial
from hpsearch.errors import HpsearchError, UserError
from hpsearch.running.study_run.watching import Watch
from hpsearch.running.tracking.secrets import without_secrets
from hpsearch.search.ranking.selection import leading

GATHER_S = 60.0  # the time between two notices of one kind, in seconds
LOOK_S = 1.0  # the time between two looks for a new best

Notice = Mapping[str, Any]  # a document that is sent as JSON


TIMEOUT_S = 10.0  # seconds that one notice may take
END_S = 15.0  # seconds that the end of a study waits for notices that are still under way

log = logging.getLogger("hpsearch")


class Event(enum.StrEnum):
    """The subject of a notice."""

    BEST = "best"  # another configuration is ahead
    TROUBLE = "trouble"
    """The study gave up, workers were lost, the disk is full, or the driver failed."""
    END = "end"  # the study has ended, or was interrupted


class Notices(Watch):
    """Watches a study and sends notices; `deliver` must return at once."""

    def __init__(
        self,
        study: str,
        deliver: Callable[[Notice], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._deliver, self._clock = study, deliver, clock
        self._study: Study | None = None  # as of the last tick
        self._now = 0.0  # the time of the last tick, by the study's clock
        self._best: Trial | None = None  # the trial that was ahead when that was last looked at
        self._may_be_better = False
        self._look_at = 0.0
        self._lost: list[str] = []  # why attempts were lost that no notice has named yet
        self._send_lost_at = 0.0
        self._waits_for_disk = False

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        if self._study is None:
            self._study = study
            self._best = self._best_now()  # that of a study that is resumed is not new
        self._now = now
        at = self._clock()
        self._may_be_better = self._may_be_better or bool(changes.trials)
        if self._may_be_better and at >= self._look_at:
            self._may_be_better = False
            is_new = self._send_best()
            self._look_at = at + (GATHER_S if is_new else LOOK_S)
        waits = study.waits_for_disk(now)
        if waits and not self._waits_for_disk:
            self._send(Event.TROUBLE, "cannot write checkpoints: the disk is full")
        self._waits_for_disk = waits
        for attempt in changes.attempts:
            if attempt.outcome is Outcome.LOST:
                self._lost.append(attempt.note or "no reason is known")
        if self._lost and at >= self._send_lost_at:
            self._send_lost()
            self._send_lost_at = at + GATHER_S

    def ended(self, record: StudyRecord) -> None:
        if self._lost:
            self._send_lost()
        reason = record.reason or "it was asked to stop"
        if record.state is StudyState.FAILED:
            self._send(Event.TROUBLE, f"gave up: {reason}", record.state)
        elif record.state is StudyState.INTERRUPTED:
            is_full = record.interruption is Interruption.DISK_FULL
            event = Event.TROUBLE if is_full else Event.END
            why = "" if record.interruption is Interruption.BY_HAND else f": {reason}"
            self._send(event, f"was interrupted{why}", record.state)
        else:
            self._send(Event.END, f"has ended: {reason}{self._best_text()}", record.state)

    def failed(self, error: Exception) -> None:
        what, _, _ = str(error).partition("\n")
        if not isinstance(error, HpsearchError):
            what = f"{type(error).__name__}: {what}"
        self._send(Event.TROUBLE, f"has no driver any more: {without_secrets(what)}")

    def _send_best(self) -> bool:
        ahead = self._best_now()
        if ahead is None or (self._best is not None and ahead.number == self._best.number):
            return False
        self._best = ahead
        self._send(Event.BEST, f"has a new best{self._best_text()}")
        return True

    def _send_lost(self) -> None:
        lost, self._lost = self._lost, []
        why, _ = Counter(lost).most_common(1)[0]
        attempts = "1 attempt" if len(lost) == 1 else f"{len(lost)} attempts"
        self._send(Event.TROUBLE, f"lost the workers of {attempts}: {without_secrets(why)}")

    def _send(self, event: Event, what: str, state: StudyState | None = None) -> None:
        text = f"hpsearch: study {self._name} {what}"
        notice = {"event": event.value, "study": self._name, "text": text}
        if state is not None:
            notice["state"] = state.value
        self._deliver({**notice, **self._progress()})

    def _progress(self) -> dict[str, Any]:
        if self._study is None:
            return {}
        trials, spec, best = self._study.history.trials, self._study.spec, self._best_now()
        spent_s = sum(trial.gpu_seconds for trial in trials)
        leading_trial = best and {
            "trial": best.number,
            "metric": spec.objective.metric,
            "value": best.value,
            "seen_at": best.seen_at,
            "last": best.last,
            "resource": best.resource,
            "unit": spec.budget.per_trial.unit.value,
            "params": best.params,
        }
        return {
            "best": leading_trial,
            "trials": dict(Counter(trial.state.value for trial in trials)),
            "gpu_hours": round(spent_s / 3600, 6),
            "seconds_left": self._study.seconds_left(self._now),
        }

    def _best_text(self) -> str:
        best = self._best_now()
        if best is None or self._study is None:
            return ""
        params = " ".join(f"{name}={_short(value)}" for name, value in best.params.items())
        value = f"{self._study.spec.objective.metric} {_short(best.value)}"
        if best.last is not None and _short(best.last) != _short(best.value):
            at = in_unit(best.seen_at or 0.0, self._study.spec.budget.per_trial.unit.value)
            value += f" at {at}, last {_short(best.last)}"
        return f" - trial {best.number}: {value}, {params}"

    def _best_now(self) -> Trial | None:
        study = self._study
        if study is None or len(study.spec.objectives) > 1:
            return None
        objective = study.spec.objective
        return leading(study.history.trials, objective.direction, objective.metric)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class DeliveryError(Exception):
    """A notice could not be delivered. The text has no secret in it."""


@dataclass(frozen=True)
class Recipient:
    """Takes notices: a name without secrets, and a function, which may raise `DeliveryError`."""

    name: str
    deliver: Callable[[Notice], None]


def recipient_of(text: str) -> Recipient:
    """The recipient that ``--notify`` names: a URL, or a shell's command. Raises UserError."""
    url = text.strip()
    scheme, separator, _ = url.partition("://")
    if separator and scheme.isalnum():
        _refuse_url(url, scheme)
        return Recipient(str(urlsplit(url).hostname), functools.partial(_post, url))
    try:
        words = shlex.split(text)
    except ValueError as error:
        what = f"--notify: the command cannot be split into words: {str(error).lower()}"
        raise UserError(what, "close its quotes") from None
    if not words:
        raise UserError("--notify: is empty", "give a URL or a command")
    if shutil.which(words[0]) is None:
        what = f"--notify: there is no program {words[0]}"
        raise UserError(what, "give a URL that begins with https://, or a command by its path")
    return Recipient(words[0], functools.partial(_run, words))


def _refuse_url(url: str, scheme: str) -> None:
    """Refuse a URL that notices cannot be sent to, without repeating it."""
    hint = "give one such as https://hooks.example.com/..."
    if scheme.lower() not in ("http", "https"):
        raise UserError(f"--notify: notices cannot be sent to {scheme}:// URLs", hint)
    try:
        host, _ = urlsplit(url).hostname, urlsplit(url).port
    except ValueError:
        host = None
    if not host or " " in url:
        raise UserError("--notify: the URL is not a valid one", hint)


def _post(url: str, notice: Notice) -> None:
    """Send a notice as JSON. A user and password in the URL become a header."""
    parts = urlsplit(url)
    user_info, _, address = parts.netloc.rpartition("@")
    headers = {"Content-Type": "application/json", "User-Agent": "hpsearch"}
    if user_info:
        encoded = base64.b64encode(unquote(user_info).encode()).decode()
        headers["Authorization"] = f"Basic {encoded}"
    request = urllib.request.Request(  # noqa: S310 - http or https, see `_refuse_url`
        urlunsplit(parts._replace(netloc=address)), _as_json(notice), headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310 - the same
            pass
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", type(error).__name__)
        code = getattr(error, "code", "")
        raise DeliveryError(f"it cannot be reached: {code} {reason}") from None


def _run(words: Sequence[str], notice: Notice) -> None:
    """Give a notice to a command, with the event and the study in its environment too."""
    named = {"HPSEARCH_EVENT": notice["event"], "HPSEARCH_STUDY": notice["study"]}
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command
            words,
            input=_as_json(notice),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **named},
            timeout=TIMEOUT_S,
            check=False,
            start_new_session=True,
        )
    except OSError as error:
        raise DeliveryError(f"it cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise DeliveryError(f"it took more than {TIMEOUT_S:.0f} s and was killed") from None
    if done.returncode != 0:
        raise DeliveryError(f"it ended with code {done.returncode}")


class _Courier:
    def __init__(self, recipient: Recipient) -> None:
        self._recipient = recipient
        self._notices: SimpleQueue[Notice | None] = SimpleQueue()
        self.deliver = self._notices.put
        self._has_complained = False
        self._thread = threading.Thread(target=self._work, name="notices", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Deliver the rest, but not for long."""
        self._notices.put(None)
        self._thread.join(END_S)
        if self._thread.is_alive():
            self._complain("it takes too long; the last notices are lost")

    def _work(self) -> None:
        while (notice := self._notices.get()) is not None:
            try:
                self._recipient.deliver(notice)
            except DeliveryError as error:
                self._complain(str(error))

    def _complain(self, what: str) -> None:
        """Warn once: later failures most likely have the same cause."""
        if self._has_complained:
            return
        self._has_complained = True
        name = self._recipient.name
        log.warning("notices do not arrive at %s: %s - the study goes on", name, what)


def watching(study: str, recipient: str) -> AbstractContextManager[Notices]:
    """Watch a study and send notices to what ``--notify`` names. Raises as `recipient_of`."""
    return notifying(study, recipient_of(recipient))


@contextmanager
def notifying(study: str, recipient: Recipient) -> Iterator[Notices]:
    """Watch a study and send notices; errors that leave the block are sent too."""
    courier = _Courier(recipient)
    notices = Notices(study, courier.deliver)
    try:
        yield notices
    except Exception as error:
        notices.failed(error)
        raise
    finally:
        courier.close()


def _as_json(notice: Notice) -> bytes:
    return json.dumps(notice, default=str).encode()
