"""The log of a program's output, without its reports, and the line in it that says why it has
ended, whatever is printed after it."""

import collections
import re
import sys
from contextlib import suppress
from pathlib import Path

from trials.checkpoints.disk.log_file import OURS, LogFile
from trials.descriptions.report_pattern import visible

LAST_LINES = 20  # lines of a log that a failure repeats
LETTERS = 500  # letters of a line that are kept
_TRACEBACK, _IGNORED = "Traceback (most recent call last)", "Exception ignored in"
_RANK = re.compile(r"^(?:\[(?:rank|default)?\d+\]:|\[\d+,\d+\]<\w+>:)\s?")
"""Begins the lines of several processes, as torchrun and mpirun print them."""
_OF_A_GROUP = re.compile(r"^\s+(?:\||\+-)\s?")  # begins the lines of an `ExceptionGroup`
_NEXT_OF_A_GROUP = re.compile(r"\s+\+[+-]+ \d+ -+")
_INSIDE = re.compile(r"\s|[│╭╰╮╯❱─┏┃┗]|$")
"""Begins the lines of a traceback, also of rich's, but for the exception's own."""
_LOGGED = re.compile(
    r"\[?\d{4}[-/]\d\d[-/]\d\d|\[?\d\d:\d\d:\d\d|[IWEF]\d{4} \d\d:"
    r"|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL)(?:\]|\s*[:|-]\s*[\w.]+\s*[:|-]|\s\s)"
    r"|\[?(?:INFO|WARN|WARNING)\b|wandb:|\w*Warning:|\S+:\d+: \w*Warning"
)
_LOGGED_ERROR = re.compile(r"\b(?:ERROR|CRITICAL|FATAL)\b|^[EF]\d{4} ")
_PROGRESS = re.compile(r"\d%\||\bit/s\b|\bs/it\b")
_EXCEPTION = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?::|$)")
_ERROR = re.compile(
    r"(?:[\w./-]+: )?(?:line \d+: )?(?:(?:fatal|runtime|internal|uncaught) )?"
    r"(?:error|exception|fatal|panic|panicked)\b(?!s)"
    r"|Fatal Python error|what\(\):|thread '.*' panicked"
    r"|.*: (?:command not found|not found|No such file or directory|Permission denied)$"
    r"|.*\bAssertion .* failed|.*\bCUDA (?:driver )?error\b|.*\bout of memory\b",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r".*\b(?:Killed|Aborted|Segmentation fault|Bus error|Illegal instruction|core dumped)\b"
)
"""A shell prints it after what the program itself has said."""
_LAUNCHER = re.compile(r"(?:\w+\.)*(?:ChildFailedError|CalledProcessError)\b")
"""A launcher says it of the program that it has started, which has said more."""


class Output:
    """The log of one attempt: a file, or standard error for None. A full disk ends no run. `words`:
    what the lines say of the program's end."""

    def __init__(self, log: Path | None) -> None:
        self._last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self.words = LastWords()
        self._file = None if log is None else LogFile(log)

    @property
    def last_lines(self) -> str:
        return "\n".join(self._last)

    def write(self, line: bytes) -> None:
        text = visible(line)
        self.words.take(text)
        if text.strip():
            self._last.append(text[:LETTERS])
        with suppress(OSError):
            if self._file is None:
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
            else:
                self._file.write(line)
                self._file.keep_small()

    def note(self, text: str) -> None:
        if self._file is not None:
            self._file.note(text)
        else:
            with suppress(OSError):
                sys.stderr.write(f"{OURS}{text}\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class LastWords:
    """Reads a program's lines one after another. `cause`: the line of the error, such as the last
    line of a traceback; empty without any."""

    def __init__(self) -> None:
        self._error = self._logged = self._plain = self._last = ""
        self._in_traceback = self._is_ignored = False

    def take(self, line: str) -> None:
        """Take in a line as it is seen on a terminal."""
        text = _RANK.sub("", line[:LETTERS])
        if text.startswith(_IGNORED):
            self._is_ignored = True
        elif _TRACEBACK in text or _NEXT_OF_A_GROUP.match(text):
            self._in_traceback = True
        elif self._in_traceback:
            self._take_inside(_OF_A_GROUP.sub("", text))
        elif text.strip():
            self._take_outside(text.strip())

    def _take_inside(self, text: str) -> None:
        if _INSIDE.match(text) or _LOGGED.match(text):
            return
        self._in_traceback = False
        if self._is_ignored:
            self._is_ignored = False
        elif not (self._error and _LAUNCHER.match(text)):
            self._error = text

    def _take_outside(self, text: str) -> None:
        self._last = text
        if _LOGGED.match(text):
            if _LOGGED_ERROR.search(text):
                self._logged = text
        elif _PROGRESS.search(text):
            return
        elif _EXCEPTION.match(text) or _ERROR.match(text):
            self._error = text.removeprefix("what():").strip()
        elif _ENDED.match(text):
            self._error = self._error or text
        else:
            self._plain = text

    @property
    def cause(self) -> str:
        return self._error or self._logged or self._plain or self._last

    @property
    def last(self) -> str:
        """The last line that is not a logger's or a progress bar's, where there is one."""
        return self._plain or self._last
