"""`hpsearch show --log`: the output of the attempts of a trial, and how they ended."""

import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import note
from hpsearch.domain.numbers import count, duration, first_line, moment
from hpsearch.domain.records import StudyState
from hpsearch.errors import UserError
from hpsearch.store.reading.queries import StudyHead, TrialDetail, trial_detail
from hpsearch.views.terminal.escapes import escaped
from trials.checkpoints import folders
from trials.checkpoints.disk.log_file import EARLIER, OURS

LOOK_S = 1.0  # seconds between two looks at a log that is followed
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""The escapes with which progress bars colour text and move the cursor."""


def print_logs(
    name: str | None, number: int, attempt: int | None, storage: str, *, follow: bool
) -> None:
    """Print the logs of one attempt of a trial or of all; with `follow`, until the trial has ended,
    or nobody drives its study. Raises UserError if there are none, or they are not here."""
    study, detail = _read(name, number, storage)
    folder = study.checkpoints
    if folder is None:
        message = f"study {study.name} was not made from a study file, so its trials have no logs"
        raise UserError(message, "only `hpsearch run` writes logs")
    attempts = len(detail.attempts)
    if attempt is not None and attempt not in [each["number"] for each in detail.attempts]:
        message = f"trial {number} of {study.name} has had {count(attempts, 'attempt')}"
        raise UserError(message, "leave out --attempt to see the logs of all")
    printed = _Printed(folder, number, attempt)
    is_over = not follow or _is_over(study, detail)
    printed.print_new(detail.attempts, to_the_end=is_over)
    if is_over and not printed.any:
        message = f"there is no log of trial {number} of {study.name} in {folder}"
        hint = "its worker's files are not on this machine, or an earlier version trained it"
        raise UserError(message, hint if attempts else "it has not started yet")
    if not is_over and folders.is_url(folder):
        note(f"the logs are in {folder}, where what is printed arrives within a minute")
    with suppress(KeyboardInterrupt):
        while not is_over:
            study, detail = _read(study.name, number, storage)
            is_over = _is_over(study, detail)
            printed.print_new(detail.attempts, to_the_end=is_over)
            if not is_over:
                time.sleep(LOOK_S)


def _read(name: str | None, number: int, storage: str) -> tuple[StudyHead, TrialDetail]:
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        return study, trial_detail(connection, study, number)


def _is_over(study: StudyHead, detail: TrialDetail) -> bool:
    return detail.trial.state.terminal or study.state is not StudyState.RUNNING


class _Printed:
    """The printed part of the logs of a trial: of one attempt, or of all."""

    def __init__(self, folder: str, trial: int, attempt: int | None) -> None:
        self._folder = folder
        self._trial = trial
        self._attempt = attempt
        self._logs: dict[int, _Log] = {}
        self._over: set[int] = set()  # the attempts whose end was printed

    @property
    def any(self) -> bool:
        return any(log.begin is not None for log in self._logs.values())

    def print_new(self, attempts: list[Mapping[str, Any]], *, to_the_end: bool) -> None:
        """Print what is new in the logs of these attempts, `to_the_end` with unfinished lines."""
        for row in attempts:
            number = int(row["number"])
            if self._attempt not in (None, number) or number in self._over:
                continue
            log = self._logs.setdefault(number, _Log(self._folder, self._trial, number))
            has_ended = row["outcome"] is not None
            sys.stdout.writelines(log.new_lines(to_the_end=to_the_end or has_ended))
            if has_ended and log.begin is not None:
                self._over.add(number)
                sys.stdout.write(f"{OURS}{_end_of(row)}\n")
        sys.stdout.flush()


class _Log:
    """The log of one attempt, and how much of it was printed."""

    def __init__(self, folder: str, trial: int, attempt: int) -> None:
        self.begin: str | None = None
        """The first line of the part that was read last: it has a time in it, so that another part
        begins in another way. None before anything was read."""
        self._place = str(folders.log_of(folder, trial, attempt))
        self._printed = 0  # the printed characters of that part

    def new_lines(self, *, to_the_end: bool) -> Iterator[str]:
        """The lines that were not printed yet; with `to_the_end`, also an unfinished one."""
        text = _content(self._place)
        if text is None:
            return
        begin, end, _ = text.partition("\n")
        if not end and not to_the_end:
            return
        if begin != self.begin:
            # What is put aside is the part that was printed before, or all that was before.
            earlier = _content(f"{self._place}{EARLIER}") or ""
            is_known = self.begin is not None and earlier.startswith(f"{self.begin}\n")
            yield from _lines(earlier[self._printed if is_known else 0 :])
            self.begin, self._printed = begin, 0
        whole = text if to_the_end else text[: text.rfind("\n") + 1]
        yield from _lines(whole[self._printed :])
        self._printed = len(whole)


def _end_of(row: Mapping[str, Any]) -> str:
    """The end of an attempt, as the database has it."""
    outcome = getattr(row["outcome"], "value", row["outcome"])
    took = duration(row["ended"] - row["started"]) if row["ended"] is not None else "some time"
    why = f": {escaped(first_line(row['note']))}" if row["note"] else ""
    return f"attempt {row['number']}: {outcome} after {took}, begun {moment(row['started'])}{why}"


def _content(log: str) -> str | None:
    """The text of a log, at a path or a URL; None without one. Raises UserError."""
    folder, name = folders.split(log)
    try:
        if folders.is_url(log):
            return folders.folder_at(folder).text(name)
        return Path(log).read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Exception as error:  # each store has errors of its own
        raise UserError(f"{log} cannot be read: {error}", "check the access to it") from error


def _lines(text: str) -> Iterator[str]:
    """Lines of a log: of a progress bar, what it showed last, without colours and movements."""
    if not text:
        return
    for line in text.removesuffix("\n").split("\n"):
        plain = _STEERING.sub("", line)
        _, _, shown = plain.rstrip("\r").rpartition("\r")
        yield escaped(shown) + "\n"
