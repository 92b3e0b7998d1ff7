"""What others wrote stays text: names, categories, errors and files with markup in them."""

import json
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.views.report.charts.style import shown
from hpsearch.views.report.data import ReportData, report_data
from hpsearch.views.report.page import html_report, markdown_report, summary
from hpsearch.views.report.rendering import (
    cell_in_markdown,
    code_span,
    fenced,
    foreign,
    in_markdown,
)
from support.studies.reported import BEGAN, HOSTILE, MARKDOWN, NAME


class _Elements(HTMLParser):
    """The elements of a page, with their attributes and the texts of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._script: dict[str, str | None] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self._script = dict(attrs) if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts.append((self._script, data))
            self._script = None


@pytest.fixture(scope="module")
def data(hostile_url: str) -> ReportData:
    store = Store.open(hostile_url)
    try:
        with store.reading() as connection:
            return report_data(connection, find_study(connection, NAME), BEGAN + 5_000)
    finally:
        store.close()


@pytest.fixture(scope="module")
def html(data: ReportData) -> str:
    return html_report(data)


def test_no_element_and_no_handler_comes_from_a_text_in_a_page_its_charts_or_a_notebook(html, data):
    page = _Elements()
    page.feed(html)
    assert "img" not in page.tags
    assert not [name for name in page.attributes if name.startswith("on")]
    programs = [attrs for attrs, _ in page.scripts if attrs.get("type") != "application/json"]
    assert len(programs) == 2
    assert "src" not in page.attributes
    charts = [text for attrs, text in page.scripts if attrs.get("type") == "application/json"]
    assert len(charts) == 5
    for text in charts:
        assert not re.search("[<>&]", text)
        assert json.loads(text)["data"]
    page = _Elements()
    page.feed(summary(data))
    of_tables = {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    of_sections = {"div", "section", "h2", "p", "strong", "span", "pre", "code"}
    assert set(page.tags) <= of_sections | of_tables


def test_the_page_may_run_its_own_two_scripts_and_fetch_nothing(html):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1]
    assert policy[1].count("sha256-") == 2
    assert "unsafe-eval" not in policy[1]
    assert "script-src &#39;sha256-" in policy[1]


def test_markdown_has_no_markup_of_a_text(data):
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = reader.parse(markdown_report(data))
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in [*tokens, *inline]}
    assert not {"html_block", "html_inline", "link_open", "image"} & kinds
    texts = "".join(child.content for child in inline if child.type == "text")
    assert "script" not in texts
    assert "@someone" not in texts
    rows = [token for token in tokens if token.type == "tr_open"]
    assert len(rows) > 10


@pytest.mark.parametrize("text", [*HOSTILE, "`", "``a`", "a|b", "  spaced  ", "two\nlines"])
def test_a_code_span_shows_the_text_and_nothing_else(text):
    tokens = MarkdownIt("commonmark").parseInline(code_span(text))[0].children or []
    assert [token.type for token in tokens] == ["code_inline"]
    assert tokens[0].content == " ".join(text.split())


def test_a_bar_in_a_cell_does_not_begin_another():
    row = f"| a | b |\n| --- | --- |\n| {cell_in_markdown(foreign('x|y'))} | {in_markdown('1|2')} |"
    tokens = MarkdownIt("commonmark").enable("table").parse(row)
    cells = [token.content for token in tokens if token.type == "inline"]
    assert len(cells) == 4
    assert cells[2] == "`x|y`"


def test_a_file_with_fences_stays_in_its_block():
    text = "a\n```\nb\n````\n# c"
    tokens = MarkdownIt("commonmark").parse(fenced(text))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content == text + "\n"


def test_a_text_on_a_figure_has_no_meaning_to_plotly():
    assert shown("<b>x</b>\n\x1b[31m") == "&lt;b&gt;x&lt;/b&gt; \\x1b[31m"
    assert shown("a" * 99 + "7") == "a" * 17 + "…" + "a" * 9 + "7"
    assert shown("$x$") == "&#36;x&#36;"
    assert len(foreign("x" * 999)) == 300
    assert "\u202e" not in foreign("a\u202eb")
    assert MARKDOWN.splitlines()[0] in foreign(MARKDOWN)
