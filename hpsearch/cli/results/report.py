"""`hpsearch report`: what happened in a study, on one page to send to others."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import command, note
from hpsearch.cli.places import refuse_taken, whole_file
from hpsearch.errors import UserError
from hpsearch.report.data import report_data
from hpsearch.report.page import html_report, markdown_report
from hpsearch.words.numbers import size

HTML = (".html", ".htm")
MARKDOWN = (".md", ".markdown")


def report_study(name: str | None, to: Path | None, storage: str, *, force: bool) -> None:
    """Write the report of a study to a file, HTML or Markdown by its name, or as Markdown to
    stdout.

    Raises:
        UserError: The name is that of neither, the file exists or cannot be written, or Plotly is
            not installed.
    """
    if to is not None:
        _refuse_place(to, force=force)
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        data = report_data(connection, study, time.time(), command)
    if to is None:
        sys.stdout.write(markdown_report(data))
        return
    text = html_report(data) if to.suffix.lower() in HTML else markdown_report(data)
    with whole_file(to) as unfinished:
        unfinished.write_text(text, "utf-8")
    note(f"wrote {to} ({size(len(text.encode()))})")


def _refuse_place(to: Path, *, force: bool) -> None:
    if to.suffix.lower() not in (*HTML, *MARKDOWN):
        message = f"{to}: reports are .html or .md files"
        raise UserError(message, f"for example: -o {to.stem or 'report'}.html")
    refuse_taken(to, force=force)
