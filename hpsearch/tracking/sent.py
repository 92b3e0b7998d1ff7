"""A record of what a tracker has been sent, in a file beside the study's checkpoints.

A sender that takes up a study again begins where the last one ended, so that nothing is sent twice.
The file is written after what it names was sent: a sender that is killed in between sends its last
few trials again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hpsearch.checkpoint_folders import TRACKING
from hpsearch.tracking.secrets import without_passwords
from trials.checkpoints.folders import folder_at, inside


@dataclass(frozen=True, slots=True)
class SentTrial:
    """The part of a trial that a tracker has been sent.

    Attributes:
        until: The resource of the last point; 0 before the first.
        digest: The digest of the facts; empty before the first.
    """

    until: float = 0.0
    digest: str = ""


class Sent:
    """The record of what one tracker has been sent of one study.

    Args:
        folder: The study's folder of checkpoints, a path or a URL.
        tracker: The name of the tracker.
        target: Where the tracker keeps the study; what it was sent elsewhere does not count.
        again: Whether to forget everything.

    Attributes:
        study: The digest of the facts of the study.
    """

    def __init__(self, folder: str, tracker: str, target: str, *, again: bool = False) -> None:
        self._place = folder_at(inside(folder, TRACKING))
        self._file = f"{tracker}.json"
        self._target = without_passwords(target)
        self.study = ""
        self._trials: dict[int, SentTrial] = {}
        self._before: dict[int, SentTrial] = {}
        """Of trials that were sent and are not safe yet, what was safe before."""
        self._is_new = False
        if not again:
            self._read()

    def of(self, number: int) -> SentTrial:
        return self._trials.get(number, SentTrial())

    def note_study(self, digest: str) -> None:
        """The study was sent."""
        self.study = digest
        self._is_new = True

    def note(self, number: int, sent: SentTrial) -> None:
        """A trial was sent."""
        self._before.setdefault(number, self.of(number))
        self._trials[number] = sent
        self._is_new = True

    def write(self, unsafe: Collection[int] = ()) -> None:
        """Write the file, if there is anything new.

        Args:
            unsafe: Trials that the tracker may still lose: the file does not name them as sent.

        Raises:
            Exception: It cannot be written; each store has errors of its own.
        """
        if not self._is_new:
            return
        self._before = {n: sent for n, sent in self._before.items() if n in unsafe}
        safe = {**self._trials, **self._before}
        trials = {str(number): [sent.until, sent.digest] for number, sent in safe.items()}
        content = {"target": self._target, "study": self.study, "trials": trials}
        self._place.write(self._file, json.dumps(content))
        self._is_new = bool(self._before)

    def _read(self) -> None:
        """Read the file. One that is damaged counts as missing: everything is sent again."""
        try:
            content = json.loads(self._place.text(self._file) or "{}")
            if content.get("target") == self._target:
                trials = {int(key): SentTrial(*sent) for key, sent in content["trials"].items()}
                self.study, self._trials = str(content["study"]), trials
        except (ValueError, TypeError, KeyError, AttributeError):
            return


def digest_of(facts: Mapping[str, Any]) -> str:
    """A short digest of plain values."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
