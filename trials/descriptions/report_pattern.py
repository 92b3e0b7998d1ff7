"""Patterns that find reports in what any program prints.

A pattern, such as ``epoch {resource} .* val_acc {accuracy}``, is a regular expression in which
``{name}`` stands for a number. ``{resource}`` says how far the trial has trained, ``{resource+1}``
the same for a program that counts from 0, and every other name is a metric. All other braces are
the expression's own, as in ``\\d{3}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trials.contract import Problem

RESOURCE = "resource"
NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf(?:inity)?|NaN|Inf(?:inity)?)"
"""A number, as programs print it. Of ``81.2%``, it is 81.2."""
LONGEST = 10_000
"""Letters of a line in which a pattern is looked for."""

_NAME = re.compile(r"\{([^\W\d][\w./@-]*)(\+1)?\}")
_ESCAPE_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_COUNTS_FROM_0 = f"{{{RESOURCE}+1}} if it counts from 0"


class ReportPattern:
    """One pattern, ready to be looked for in lines.

    Raises:
        ValueError: It is not a regular expression, or it has a name twice.
    """

    def __init__(self, text: str) -> None:
        names: list[str] = []
        parts: list[str] = []
        at = 0
        for found in _NAME.finditer(text):
            parts += [text[at : found.start()], f"(?P<number_{len(names)}>{NUMBER})"]
            names.append(found[1])
            at = found.end()
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{text!r} has {{{twice}}} twice")
        try:
            self._expression = re.compile("".join([*parts, text[at:]]))
        except re.error as error:
            raise ValueError(f"{text!r} is not a regular expression: {error.msg}") from None
        self.names = tuple(names)
        self._offset = 1.0 if f"{{{RESOURCE}+1}}" in text else 0.0

    def numbers_in(self, line: str) -> dict[str, float]:
        """The numbers of a line by their names; empty if the pattern is not in it."""
        found = self._expression.search(line[:LONGEST])
        if found is None:
            return {}
        numbers = {}
        for index, name in enumerate(self.names):
            text = found[f"number_{index}"]
            if text is not None:  # in an optional part of the expression
                numbers[name] = float(text) + (self._offset if name == RESOURCE else 0.0)
        return numbers


def visible(line: bytes) -> str:
    """A line as a terminal would show it: of a progress bar, the last state."""
    text = line.decode(errors="replace").rstrip()
    return _ESCAPE_CODE.sub("", text).rstrip().rpartition("\r")[2]


def texts_of(task: Mapping[str, Any]) -> list[Any]:
    """The patterns of a command's `task` part as a list, which may have mistakes."""
    stated = task.get("report", [])
    return list(stated) if isinstance(stated, list) else [stated]


def metrics_of(task: Mapping[str, Any]) -> frozenset[str] | None:
    """The metrics that the patterns of a `task` part name; None if it has no patterns."""
    texts = [text for text in texts_of(task) if isinstance(text, str)]
    named = {found[1] for text in texts for found in _NAME.finditer(text)}
    return frozenset(named - {RESOURCE}) or None


def problems_with(texts: Sequence[Any]) -> Iterator[Problem]:
    """Every mistake in the patterns of a study file."""
    patterns = []
    for text in texts:
        if not isinstance(text, str) or not text:
            yield Problem("task.report", f"must be a text or a list of texts, not {text!r}")
            return
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


# --------------------------------------------------------------------------------------------------
# a pattern for what a program prints already

_COUNT = re.compile(
    r"(?<![A-Za-z])(?:global[_ ]?step|epochs?|steps?|iter(?:ation)?s?|rounds?)\b[\W_]{0,4}?(\d+)",
    re.IGNORECASE,
)
_METRIC = re.compile(rf"([A-Za-z][\w/.@-]*)(['\"]?\s*[:=]?\s*)({NUMBER})(?![\w.]*\w)")
_HELD_OUT = ("val", "dev", "eval", "test")
_LEAST_LETTERS = 3


def offered(lines: Sequence[str], metric: str) -> str | list[str] | None:
    """A pattern, or two, that find a metric in what a program has printed.

    Returns: None if nothing in the lines looks like it.
    """
    counts = [(at, found) for at, line in enumerate(lines) if (found := _COUNT.search(line))]
    values = [(at, found) for at, line in enumerate(lines) if (found := _named(metric, line))]
    if not counts or not values or not _NAME.fullmatch(f"{{{metric}}}"):
        return None
    counted = dict(counts)
    both = next(((counted[at], value) for at, value in values if at in counted), None)
    count, value = both or (counts[0][1], values[0][1])
    from_0 = int(counts[0][1][1]) == 0
    resource = _before(count, 1) + (f"{{{RESOURCE}+1}}" if from_0 else f"{{{RESOURCE}}}")
    named = _before(value, 3) + f"{{{metric}}}"
    if both is not None:
        is_first = count.start() < value.start()
        return f"{resource}.*{named}" if is_first else f"{named}.*{resource}"
    return [resource, named] if counts[0][0] < values[0][0] else [named, resource]


def _named(metric: str, line: str) -> re.Match[str] | None:
    alike = [each for each in _METRIC.finditer(line) if _is_like(each[1].lower(), metric.lower())]
    of_held_out = [each for each in alike if any(word in each[1].lower() for word in _HELD_OUT)]
    return next(iter([*of_held_out, *alike]), None)


def _is_like(name: str, metric: str) -> bool:
    pairs = [(a, b) for a in re.split(r"[\W_]+", name) for b in re.split(r"[\W_]+", metric)]
    long = [pair for pair in pairs if min(map(len, pair)) >= _LEAST_LETTERS]
    return name == metric or any(a.startswith(b) or b.startswith(a) for a, b in long)


def _before(found: re.Match[str], group: int) -> str:
    """The text of a match before a group, as an expression."""
    text = re.escape(found.string[found.start() : found.start(group)])
    return re.sub(r"(?:\\ )+", lambda spaces: " " if len(spaces[0]) == len("\\ ") else " +", text)
