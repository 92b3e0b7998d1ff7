"""`hpsearch import-spec`: a study file from what another program searches by."""

from __future__ import annotations

import sys
from pathlib import Path

from hpsearch.cli.output import note
from hpsearch.cli.places import write_text
from hpsearch.spec_import.draft import problems_in
from hpsearch.spec_import.source import draft_of


def write_imported(source: Path, out: Path | None, *, force: bool) -> None:
    """Write the study file that a file of another program becomes, and say what it lacks.

    Args:
        source: The file.
        out: The study file; None prints it.
        force: Whether to replace a file that exists.

    Raises:
        UserError: The file cannot be read, has nothing to search, or the study file exists.
    """
    draft = draft_of(source)
    text = draft.text(source.name)
    if out is None:
        sys.stdout.write(text)
    else:
        write_text(out, text, force=force)
    for remark in draft.remarks:
        place = source.name if remark.line is None else f"{source.name}:{remark.line}"
        note(f"{place}: {remark.what}")
    problems = problems_in(text)
    if problems:
        note("it still needs a hand before it passes the check:")
        for problem in problems:
            note(f"  {problem}")
    if out is not None:
        note(f"wrote {out}, with these remarks as comments; check it with: hpsearch check {out}")
