"""The file of a report: written whole, or not at all."""

from __future__ import annotations

from pathlib import Path

from hpsearch.errors import UserError
from hpsearch.report.figures.style import plotly
from hpsearch.report.rendering import as_html, as_markdown, summary_html
from hpsearch.report.sections import page
from hpsearch.report.story import StudyStory


def html_report(story: StudyStory) -> str:
    """The report of a study as HTML.

    Raises:
        UserError: Plotly is not installed.
    """
    plotly()
    return as_html(page(story))


def markdown_report(story: StudyStory) -> str:
    """The report of a study as Markdown, without charts."""
    return as_markdown(page(story, with_charts=False))


def summary(story: StudyStory) -> str:
    """The answer of a study as a piece of HTML."""
    return summary_html(page(story, with_charts=False))


def write_whole(text: str, to: Path) -> None:
    """Write a file, completely or not at all.

    Raises:
        UserError: It cannot be written.
    """
    unfinished = to.with_name(f".{to.name}.unfinished")
    try:
        unfinished.write_text(text, "utf-8")
        unfinished.replace(to)
    except OSError as error:
        message = f"{to} cannot be written: {error.strerror or error}"
        hint = "check the folder, its permissions and the free space on its disk"
        raise UserError(message, hint) from error
    finally:
        unfinished.unlink(missing_ok=True)
