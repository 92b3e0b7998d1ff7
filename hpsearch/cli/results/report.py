"""`hpsearch report`: what happened in a study, on one page to send to others."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hpsearch.cli.opening import chosen_study, viewing
from hpsearch.cli.output import ReportFormat, note
from hpsearch.cli.places import refuse_taken, whole_file
from hpsearch.errors import UserError
from hpsearch.report.story import study_story
from hpsearch.report.writing import html_report, markdown_report
from hpsearch.words.numbers import size

_ENDINGS = {
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
    ".md": ReportFormat.MARKDOWN,
    ".markdown": ReportFormat.MARKDOWN,
}


def report_study(
    name: str | None, to: Path | None, format_: ReportFormat | None, storage: str, *, force: bool
) -> None:
    """Write the report of a study to a file, or Markdown to stdout.

    Args:
        name: The study; None for the only one.
        to: The file; None for stdout.
        format_: As what; None for what the file's name says.
        storage: The database's URL.
        force: Whether to replace a file.

    Raises:
        UserError: The name says something else, HTML was to go to stdout, the file exists or cannot
            be written, or Plotly is not installed.
    """
    chosen = _format(to, format_)
    if to is not None:
        _refuse_place(to, force=force)
    with viewing(storage) as connection:
        story = study_story(connection, chosen_study(connection, name), time.time())
    text = html_report(story) if chosen is ReportFormat.HTML else markdown_report(story)
    if to is None:
        sys.stdout.write(text)
        return
    with whole_file(to) as unfinished:
        unfinished.write_text(text, "utf-8")
    note(f"wrote {to} ({size(len(text.encode()))})")


def _format(to: Path | None, format_: ReportFormat | None) -> ReportFormat:
    """What to write."""
    if to is None:
        if format_ is ReportFormat.MARKDOWN:
            return format_
        raise UserError("no file to write was given", "for example: -o report.html")
    of_name = _ENDINGS.get(to.suffix.lower())
    chosen = format_ or of_name
    if chosen is None:
        message = f"{to}: reports are .html or .md files"
        raise UserError(message, f"for example: -o {to.stem or 'report'}.html")
    if of_name is not None and chosen is not of_name:
        message = f"{to} has the ending of another format than {chosen.value}"
        raise UserError(message, f"for example: -o {to.stem}.{chosen.value}")
    return chosen


def _refuse_place(to: Path, *, force: bool) -> None:
    refuse_taken(to, force=True)  # refuses what cannot be a name
    if to.is_dir():
        raise UserError(f"{to} is a folder", f"for example: -o {to / 'report.html'}")
    refuse_taken(to, force=force)
