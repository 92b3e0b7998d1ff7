"""`hpsearch logs`: what the command of a trial has printed besides its reports."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.results.show import name_and_number
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState
from hpsearch.errors import UserError
from hpsearch.store.reading.queries import StudyHead, trial_detail
from hpsearch.views.terminal import escaped
from trials.checkpoints import places
from trials.descriptions.command import COMMAND
from trials.tasks.command.output import EARLIER

LOOK_S = 0.5
"""How often a log that is followed is read."""
ASK_S = 2.0
"""How often the database is asked whether its trial has ended."""


def print_logs(words: list[str], attempt: int | None, storage: str, *, follow: bool) -> None:
    """Print the logs of a trial's attempts, from the first one on.

    Args:
        words: The trial's number, after the study's name where one is given.
        attempt: The only attempt to print; None for all.
        storage: The database's URL.
        follow: Whether to go on until the trial has ended.

    Raises:
        UserError: There is no such trial or attempt, its task keeps no logs, or they are not here.
    """
    name, number = name_and_number(words, "logs")
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        detail = trial_detail(connection, study, number)
    folder = _folder_of(study)
    if follow and places.is_url(folder):
        message = f"the logs of study {study.name} are in {folder}, where an attempt's log arrives"
        raise UserError(f"{message} when it has ended", "read it without --follow")
    known = [int(each["number"]) for each in detail.attempts]
    if attempt is not None and attempt not in known:
        message = f"trial {number} of {study.name} has had {len(known)} attempts"
        raise UserError(message, "leave out --attempt to see the logs of all")
    shown = _Shown(folder, number, attempt)
    any_shown = shown.print_new(known, to_the_end=not follow)
    if follow:
        with suppress(KeyboardInterrupt):
            _follow(shown, study.name, number, storage)
    elif not any_shown:
        message = f"there is no log of trial {number} of {study.name} in {folder}"
        hint = "it has not started yet, or its worker's files are not on this machine"
        raise UserError(message, hint)


def _folder_of(study: StudyHead) -> str:
    """The study's folder.

    Raises:
        UserError: Its task keeps no logs.
    """
    kind = (study.written.get("task") or {}).get("kind")
    if kind != COMMAND.kind:
        raise UserError(
            f"study {study.name} has no logs: only tasks of the kind command have them",
            "Ray keeps what a worker prints on its machine, in /tmp/ray/session_latest/logs",
        )
    assert study.checkpoints is not None, "a study file gives its study a folder"
    return study.checkpoints


class _Shown:
    """What was printed of the logs of a trial."""

    def __init__(self, folder: str, trial: int, attempt: int | None) -> None:
        self._folder = folder
        self._trial = trial
        self._attempt = attempt
        self._read: dict[int, int] = {}
        """How much was printed of the log of each attempt, in characters."""

    def print_new(self, known: list[int], *, to_the_end: bool) -> bool:
        """Print what is new in the logs of these attempts.

        Args:
            known: The attempts.
            to_the_end: Whether a last line without an end is printed, too.

        Returns: False if there is no log.
        """
        any_there = False
        for attempt in known:
            if self._attempt not in (None, attempt):
                continue
            text = self._text(attempt)
            if text is None:
                continue
            any_there = True
            before = self._read.get(attempt, 0)
            whole_lines = text if to_the_end else text[: text.rfind("\n") + 1]
            # A log that was put aside begins anew.
            new = whole_lines[before if len(whole_lines) >= before else 0 :]
            self._read[attempt] = len(whole_lines)
            sys.stdout.writelines(_lines(new))
        sys.stdout.flush()
        return any_there

    def _text(self, attempt: int) -> str | None:
        """The log of an attempt; None if there is none."""
        log = str(places.log_of(self._folder, self._trial, attempt))
        text = _content(log)
        if text is None or attempt in self._read:
            return text
        earlier = _content(f"{log}{EARLIER}") or ""
        sys.stdout.writelines(_lines(earlier))
        return text


def _content(log: str) -> str | None:
    """What a log holds, a path or a URL; None if there is none."""
    if places.is_url(log):
        folder, name = places.split(log)
        return places.place(folder).text(name)
    try:
        return Path(log).read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def _lines(text: str) -> Iterator[str]:
    """Lines of a log: of a progress bar, what it showed last."""
    if not text:
        return
    for line in text.removesuffix("\n").split("\n"):
        _, _, shown = line.rstrip("\r").rpartition("\r")
        yield escaped(shown) + "\n"


def _follow(shown: _Shown, name: str, number: int, storage: str) -> None:
    """Print what comes until the trial has ended, or nobody drives its study."""
    while True:
        with reading(storage) as connection:
            study = chosen_study(connection, name)
            detail = trial_detail(connection, study, number)
        known = [int(each["number"]) for each in detail.attempts]
        has_ended = detail.trial.state in (State.COMPLETE, State.PRUNED, State.FAILED)
        if has_ended or study.state is not StudyState.RUNNING:
            shown.print_new(known, to_the_end=True)
            return
        ask_at = time.monotonic() + ASK_S
        while time.monotonic() < ask_at:
            shown.print_new(known, to_the_end=False)
            time.sleep(LOOK_S)
