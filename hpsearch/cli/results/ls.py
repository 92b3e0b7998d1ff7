"""`hpsearch ls`: the studies of a database."""

from __future__ import annotations

from hpsearch.cli.opening import reading
from hpsearch.cli.output import Format, emit, note, show, terminal_width
from hpsearch.documents.studies import study_document
from hpsearch.store.reading.standing import list_studies
from hpsearch.terminal import tables


def print_studies(storage: str, format_: Format) -> None:
    """Print all studies, the newest first."""
    with reading(storage) as connection:
        studies = list_studies(connection)
    if format_ is not Format.TABLE:
        emit([study_document(each) for each in studies], format_)
    elif studies:
        show(tables.studies(studies, terminal_width()))
    else:
        note("no studies yet; start one with: hpsearch run STUDY.yaml")
