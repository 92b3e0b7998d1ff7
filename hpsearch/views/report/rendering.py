"""A page as HTML, complete in one file, or as Markdown.

**HTML.** Everything is escaped by Jinja2, and the data of charts is JSON in which no `<` is left.
The page states a Content-Security-Policy: it may fetch nothing, and runs the two scripts that are
in it, by their hashes, and no others.

**Markdown.** Texts that others wrote are code spans, in which nothing is markup but a longer run of
backticks, and in other texts every character that means something is escaped.

**Texts.** A line is a sequence of pieces before it is known which of the two the page is. A piece
that others wrote, such as the name of a parameter or an error, is `Foreign`: it is shown as code,
and is never markup.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hpsearch.views.report.charts.style import Chart, plotly, shortened
from hpsearch.views.terminal.escapes import escaped

if TYPE_CHECKING:
    import plotly.graph_objects as go


LONGEST = 300  # characters of a foreign text in a line or cell
LONGEST_NAME = 40  # characters of a name above a column, or of a value below it


class Foreign(str):
    """A text that others wrote."""

    __slots__ = ()


Pieces = tuple[str, ...]  # a line: pieces that follow each other


def foreign(text: object, longest: int = LONGEST) -> Foreign:
    """A text that others wrote, on one line, cut, its control characters written as escapes."""
    line = " ".join(escaped(str(text)).split())
    return Foreign(line if len(line) <= longest else line[: longest - 1] + "…")


def foreign_name(text: str) -> Foreign:
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

    key: str  # names it on the page
    title: str
    lines: Sequence[Pieces] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[PageTable] = ()
    code: Sequence[tuple[str, str]] = ()  # titles and texts of files


@dataclass(frozen=True, slots=True)
class PageResult:
    """The best configuration, as the first part of the page."""

    headline: Pieces
    tables: Sequence[PageTable] = ()  # the configuration; of several objectives, those of the front
    warnings: Sequence[Pieces] = ()
    is_sure: bool = False  # True if the best configuration is confirmed
    command_title: str = ""
    commands: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A whole page."""

    name: Foreign
    subtitle: Pieces
    result: PageResult
    charts: Sequence[Chart]  # the pictures of the result
    sections: Sequence[PageSection]
    footer: Pieces


_IN_JSON = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}
"""Characters that could end a script element, or a line in one, with their escapes inside JSON."""
_MARKDOWN = re.compile(r"[\\`*_\[\]<>&|~$]")
_MENTION = re.compile(r"([@#])(?=\w)")
ZERO_WIDTH_SPACE = "\u200b"


def as_html(page: ReportPage) -> str:
    """The page as HTML, with all that it needs inside. Raises UserError without Plotly."""
    plotly()
    from plotly.offline import get_plotlyjs

    scripts = [_script(get_plotlyjs()), _script(_own("report.js"))]
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    template = templates_of().get_template("report.html.j2")
    style = Markup(_own("report.css"))  # noqa: S704  # a file of our own
    return template.render(page=page, policy=policy, style=style, scripts=scripts)


def as_markdown(page: ReportPage) -> str:
    text = templates_of(escape=False).get_template("report.md.j2").render(page=page)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def summary_html(page: ReportPage) -> str:
    return templates_of().get_template("summary.html.j2").render(page=page)


def figure_json(figure: go.Figure) -> Markup:
    text: str = figure.to_json()
    return Markup(text.translate(_IN_JSON))  # noqa: S704  # no markup is left in it


def code_span(text: str) -> str:
    line = " ".join(text.split())
    if not line:
        return ""
    fence = "`" + max(re.findall("`+", line), key=len, default="")
    space = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{space}{line}{space}{fence}"


def fenced(text: str) -> str:
    fence = "`" + max(["``", *re.findall("`+", text)], key=len)
    body = text.replace("\r", "").rstrip("\n")
    return f"{fence}yaml\n{body}\n{fence}"


def in_markdown(text: str) -> str:
    """A text in Markdown: as code if others wrote it, else with nothing in it that is markup."""
    if isinstance(text, Foreign):
        return code_span(text)
    escaped = _MARKDOWN.sub(lambda found: "\\" + found[0], text)
    return _MENTION.sub(lambda found: found[1] + ZERO_WIDTH_SPACE, escaped)


def cell_in_markdown(text: str) -> str:
    """The same in a cell of a table, where a bar would begin the next cell, even in code."""
    in_cell = in_markdown(text)
    return in_cell.replace("|", "\\|") if isinstance(text, Foreign) else in_cell


def line_in_markdown(pieces: Pieces) -> str:
    return "".join(map(in_markdown, pieces))


@cache
def templates_of(*packages: str, escape: bool = True) -> Environment:
    """The templates of the report and of other packages; with `escape` they are HTML."""
    places = [PackageLoader(package) for package in (*packages, "hpsearch.views.report")]
    made = Environment(
        loader=ChoiceLoader(places),
        autoescape=escape,  # noqa: S701  # Markdown has filters of its own
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (figure_json, code_span, fenced, line_in_markdown, in_markdown, cell_in_markdown)
    made.filters.update({each.__name__: each for each in filters})
    return made


def _own(name: str) -> str:
    return resources.files("hpsearch.views.report").joinpath("static", name).read_text("utf-8")


def _script(text: str) -> Markup:
    """A program that can stand in a script element, as a browser reads it there."""
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    assert "</script" not in unix.lower()
    return Markup(unix)  # noqa: S704  # a file of our own, or Plotly's
