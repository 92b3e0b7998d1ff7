"""The dashboard's pages as HTML, which Jinja2 escapes, and the tables of a terminal in them."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from starlette.responses import HTMLResponse

from hpsearch.domain.numbers import cell, duration, moment, number
from hpsearch.views.report.rendering import PageTable, foreign, foreign_name, templates_of
from hpsearch.views.terminal.status import speed
from hpsearch.views.terminal.tables import best_value
from hpsearch.views.words import (
    BUDGET_WORDS,
    answer_in_words,
    counted,
    expected,
    nearest_limit,
    of_limit,
    request_in_words,
)

_CODE = re.compile(r"`([^`]+)`")
_FILTERS = (
    *(best_value, cell, counted, duration, expected, foreign, foreign_name, moment),
    *(nearest_limit, number, of_limit, answer_in_words, speed, request_in_words),
)
"""Functions of others that templates use by their names."""


def html(template: str, code: int = 200, **values: Any) -> HTMLResponse:
    """A page or a part of one, which no cache keeps, of a template without ``.html.j2``."""
    text = _templates().get_template(f"{template}.html.j2").render(values)
    return HTMLResponse(text, code, {"Cache-Control": "no-store"})


@cache
def _templates() -> Environment:
    made = templates_of("hpsearch.views.pages").overlay()
    own = {"limit_word": BUDGET_WORDS.__getitem__, "sentence": _sentence}
    made.filters = {**made.filters, **{each.__name__: each for each in _FILTERS}, **own}
    return made


def _sentence(text: str) -> Markup:
    """A message as a sentence, with texts in backticks as code."""
    begun = text[:1].upper() + text[1:]
    whole = begun if begun.endswith((".", "?", "!")) else f"{begun}."
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(whole))))  # noqa: S704  # it is escaped


def page_tables(parts: Sequence[RenderableType], first: str) -> list[PageTable]:
    return [_page_table(part, first) for part in parts if isinstance(part, Table)]


def _page_table(table: Table, untitled: str) -> PageTable:
    title = _plain(table.title).strip() if table.title else untitled
    columns = [list(column.cells) for column in table.columns]
    rows = [[foreign(_plain(each)) for each in row] for row in zip(*columns, strict=True)]
    heads = [_plain(column.header) for column in table.columns] if table.show_header else []
    numeric = [n for n, column in enumerate(table.columns) if column.justify == "right"]
    return PageTable(title[:1].upper() + title[1:], heads, rows, frozenset(numeric))


def _plain(content: RenderableType) -> str:
    return content.plain if isinstance(content, Text) else str(content)
