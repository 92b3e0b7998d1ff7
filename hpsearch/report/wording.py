"""The texts of a page before it is known whether it is HTML or Markdown.

A line is a sequence of pieces. A piece that others wrote, such as the name of a parameter or an
error, is `Foreign`: it is shown as code, and is never markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpsearch.report.charts.chart import Chart
from hpsearch.report.charts.style import shortened
from hpsearch.terminal.escapes import escaped

LONGEST = 300
"""Characters of a foreign text in a line or cell."""
LONGEST_NAME = 40
"""Characters of a name above a column, or of a value below it."""


class Foreign(str):
    """A text that others wrote."""

    __slots__ = ()


Pieces = tuple[str, ...]
"""A line: pieces that follow each other."""


def foreign(text: object, longest: int = LONGEST) -> Foreign:
    """A text that others wrote, on one line, cut, its control characters written as escapes."""
    line = " ".join(escaped(str(text)).split())
    return Foreign(line if len(line) <= longest else line[: longest - 1] + "…")


def foreign_name(text: str) -> Foreign:
    """A name that others gave, short enough for the head of a column."""
    line = " ".join(escaped(text).split())
    return Foreign(shortened(line, LONGEST_NAME))


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: frozenset[int] = frozenset()
    """The indices of columns of numbers, which are aligned to the right."""


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page under a heading."""

    key: str
    """Names it on the page."""
    title: str
    lines: Sequence[Pieces] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[PageTable] = ()
    code: Sequence[tuple[str, str]] = ()
    """Titles and texts of files."""


@dataclass(frozen=True, slots=True)
class PageResult:
    """The best configuration, as the first part of the page."""

    headline: Pieces
    tables: Sequence[PageTable] = ()
    """The configuration; of several objectives, those of the front."""
    warnings: Sequence[Pieces] = ()
    is_sure: bool = False
    """True if the best configuration is confirmed."""
    command_title: str = ""
    commands: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A whole page."""

    name: Foreign
    subtitle: Pieces
    result: PageResult
    charts: Sequence[Chart]
    """The pictures of the result."""
    sections: Sequence[PageSection]
    footer: Pieces
