"""Patterns that find reports in the output of any program.

A pattern, such as ``epoch {resource} .* val_acc {accuracy}``, is a regular expression in which
``{name}`` stands for a number: ``{resource}``, ``{resource+1}`` for a program that counts from 0,
or the name of a metric. All other braces are the expression's own, as in ``\\d{3}``.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trials.contract import Problem
from trials.descriptions.cells import AS_PRINTED, PrintedNumbers

if TYPE_CHECKING:
    import regex

RESOURCE = "resource"
NUMBER = (
    r"[-+]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
    r"(?:[.,'’_\u00a0\u2009\u202f][0-9]++){0,4}?"
    r"|nan|inf(?:inity)?|NaN|Inf(?:inity)?)"
)
"""A number in the forms that programs print; 81.2 in ``81.2%``. It takes all the digits that there
are: to try fewer would take very long where there are thousands. Commas and the like are taken
where the pattern does not match without, and else read by `AS_PRINTED`."""
LONGEST = 10_000  # letters of a line that are searched
LIMIT_S = 0.5  # seconds of computing that one search may take, in which other threads go on
MOST_LETTERS, MOST_REPEATED = 1_000, 100_000
"""Letters of a pattern, and how often it may repeat a part by its counts, as ``\\d{3}`` does."""

_NAME = re.compile(r"\{([^\W\d][\w./@-]*)(\+1)?\}")
_NOT_INSIDE = (
    r"(?<![\d.])(?<!\d[,'’_\u00a0\u2009\u202f])(?<!\d[eE])(?<!\d[eE][-+])(?<![\s=:(\[][-+])"
)
"""Where a number may begin: not within another one, whatever comes before."""
_BLANKS = re.compile(r"(?:\\s| )(?:[*+?]|\{\d*,?\d*\})\??\)*$")
_OPEN = re.compile(r"(?:(?<!\\)[.\]]|\\[SWDdw])(?:[*+?]|\{\d*,?\d*\})\??\)*$|^$")
"""Ends what comes before a number in a pattern and may take a part of the number."""
_COUNTED = re.compile(r"\{(\d*),?(\d*)\}")
_ESCAPE_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_COUNTS_FROM_0 = f"{{{RESOURCE}+1}} if it counts from 0"


class ReportPattern:
    """One compiled pattern. Raises ValueError if it is no expression, or has a name twice."""

    def __init__(self, text: str) -> None:
        names: list[str] = []
        parts: list[str] = []
        follows: list[str] = []
        at = 0
        for found in _NAME.finditer(text):
            before = text[at : found.start()]
            begins = _NOT_INSIDE if _OPEN.search(_BLANKS.sub("", before)) else ""
            parts += [before, f"{begins}(?P<number_{len(names)}>{NUMBER})"]
            names.append(found[1])
            at = found.end()
            follows.append(text[at:])
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{text!r} has {{{twice}}} twice")
        self.text = text
        self._follows = follows
        self._expression = _compiled("".join([*parts, text[at:]]), text)
        self.names = tuple(names)
        self._offset = 1.0 if f"{{{RESOURCE}+1}}" in text else 0.0

    def numbers_in(self, line: str, printed: PrintedNumbers | None = None) -> dict[str, float]:
        """The numbers of a line by their names; empty without a match. `printed`: reads the numbers
        of the program that has printed the line. Raises TimeoutError if the search takes too long,
        ValueError if a number can be read in two ways, or in none."""
        found = self._expression.search(line[:LONGEST], timeout=LIMIT_S, concurrent=True)
        if found is None:
            return {}
        texts = {}
        for index, name in enumerate(self.names):
            if found[f"number_{index}"] is not None:  # else in an optional part of the expression
                texts[name] = self._whole(found, index)
        numbers = (printed or PrintedNumbers()).values_of(texts, RESOURCE)
        if RESOURCE in numbers:
            numbers[RESOURCE] += self._offset
        return numbers

    def _whole(self, found: regex.Match[str], index: int) -> str:
        """A number as it is printed, as far as the pattern does not go on within it."""
        start, end = found.span(f"number_{index}")
        text, line = str(found[f"number_{index}"]), str(found.string)
        whole = AS_PRINTED.match(line, start)
        if whole is None or whole.end() <= end:
            return text
        others = [found.start(f"number_{each}") for each in range(len(self.names))]
        is_divided = any(start < other < whole.end() for other in others)
        if is_divided or _begins_with(self._follows[index], line[end]):
            return text
        if " " in whole["number"]:
            what = f"{self.names[index]} is {whole['number']!r}, which may be two numbers"
            hint = "write the blank after the name in braces, or print no blank within numbers"
            raise ValueError(f"{what}; {hint}")
        return whole[0]


def _begins_with(expression: str, letter: str) -> bool:
    """True if an expression names a letter that it begins with."""
    names = r"(?:\\s| )" if letter.isspace() else re.escape(letter)
    return re.match(r"(?:\\s[*+]|[\\(?:\[^])*?" + names, expression) is not None


def _compiled(expression: str, text: str) -> regex.Pattern[str]:
    """A regular expression of Python's, for a library that can end a search. Raises ValueError."""
    import regex  # here: few study files have patterns

    pairs = _COUNTED.findall(text[:MOST_LETTERS])
    repeated = math.prod(max(1, int(most or least or 1)) for least, most in pairs)
    if len(text) > MOST_LETTERS or repeated > MOST_REPEATED:
        raise ValueError(f"{text[:60]!r} is too long, or repeats its parts too often")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what a later Python may read in another way
        try:
            re.compile(expression)
            return regex.compile(expression)
        except (re.error, regex.error) as error:
            raise ValueError(f"{text!r} is not a regular expression: {error.msg}") from None
        except RecursionError:
            raise ValueError(f"{text[:60]!r} is nested too deeply") from None


def visible(line: bytes) -> str:
    """A line as on a terminal: the last state of a progress bar, without colours."""
    text = line.decode(errors="replace").rstrip()
    last = _ESCAPE_CODE.sub("", text).rstrip().rpartition("\r")[2]
    return _overwritten(last) if "\b" in last else last


def _overwritten(text: str) -> str:
    """A text in which letters after backspaces take the places of those before."""
    shown: list[str] = []
    at = 0
    for letter in text:
        if letter == "\b":
            at = max(0, at - 1)
        else:
            shown[at : at + 1] = letter
            at += 1
    return "".join(shown)


def texts_of(task: Mapping[str, Any]) -> list[Any]:
    """The patterns of a command's `task` part, which may have mistakes."""
    stated = task.get("report", [])
    if isinstance(stated, dict):  # it names files
        return []
    return list(stated) if isinstance(stated, list) else [stated]


def metrics_of(task: Mapping[str, Any]) -> frozenset[str] | None:
    """The metrics in the patterns of a `task` part; None without patterns."""
    texts = [text for text in texts_of(task) if isinstance(text, str)]
    named = {found[1] for text in texts for found in _NAME.finditer(text)}
    return frozenset(named - {RESOURCE}) or None


def problems_with(texts: Sequence[Any]) -> Iterator[Problem]:
    """Every mistake in the patterns of a study file."""
    patterns = []
    for text in texts:
        try:
            patterns.append(ReportPattern(text))
        except ValueError as error:
            yield Problem("task.report", f"{error}; write {{accuracy}} where a number stands")
            return
    names = {name for pattern in patterns for name in pattern.names}
    if RESOURCE not in names:
        what = "does not say how far the trial has trained"
        where = f"write {{{RESOURCE}}} where the program prints that, or {_COUNTS_FROM_0}"
        yield Problem("task.report", f"{what}; {where}")
    if not names - {RESOURCE}:
        what = "names no metric; write its name in braces where its value stands"
        yield Problem("task.report", f"{what}, such as val_acc {{accuracy}}")
    for pattern in patterns:
        if not pattern.names:
            yield Problem("task.report", "has a text without a name in braces")
