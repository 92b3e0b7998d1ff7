"""A report as text: the page of a story as HTML, as Markdown, and its answer alone."""

from __future__ import annotations

from hpsearch.report.rendering import as_html, as_markdown, summary_html
from hpsearch.report.sections import answer_alone, page
from hpsearch.report.story import StudyStory


def html_report(story: StudyStory) -> str:
    """The report of a study as HTML.

    Raises:
        UserError: Plotly is not installed.
    """
    return as_html(page(story))


def markdown_report(story: StudyStory) -> str:
    """The report of a study as Markdown, without charts."""
    return as_markdown(page(story, with_charts=False))


def summary(story: StudyStory) -> str:
    """The answer of a study as a piece of HTML."""
    return summary_html(answer_alone(story))
