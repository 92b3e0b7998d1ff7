"""`hpsearch export`: a study as a file, as a copy in a storage of Optuna's, or in experiment
trackers. `hpsearch report`: what happened in it, on one page to send to others.
"""

import sys
import time
from contextlib import closing
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.options import DESTINATIONS, StudyExport
from hpsearch.cli.output import What, log_as_notes, note, refuse_taken, whole_file
from hpsearch.domain.numbers import count, size
from hpsearch.domain.plugins.door import named, offers_of, taking
from hpsearch.domain.plugins.offers import SourcePlugin
from hpsearch.errors import Interrupted, Unreachable, UserError
from hpsearch.store.store import Store
from hpsearch.study_file.trackers import NamedTracker, TrackerList
from hpsearch.study_file.validation import problems_of
from hpsearch.views.report.data import report_data
from hpsearch.views.report.page import html_report, markdown_report

SUFFIXES = (".csv", ".parquet")

_TRACKERS: TypeAdapter[tuple[NamedTracker, ...]] = TypeAdapter(TrackerList)


def export_study(wanted: StudyExport) -> None:
    """Write a study to one of `DESTINATIONS`; without one, to the trackers of the study file."""
    to = wanted.to
    is_file = to is not None and Path(to).suffix in SUFFIXES
    if not is_file and wanted.what is not What.TRIALS:
        raise UserError("--what is for files", "leave it out, or name a file: --to reports.csv")
    if to is not None and is_file:
        _export_file(Path(to), wanted)
    elif to is not None and (copier := _copier_of(to)):
        _copy(copier, to, wanted)
    elif to is not None and Path(to).suffix and "{" not in to:
        example = f"for example: --to {Path(to).stem}.csv"
        raise UserError(f"{to}: exports are .csv or .parquet files", example)
    else:
        _send(wanted)


def _export_file(to: Path, wanted: StudyExport) -> None:
    # Imported here: pandas and Optuna are slow to import, and each place needs one of them.
    from hpsearch.store.reading import frames
    from hpsearch.store.reading.files import write

    refuse_taken(to, force=wanted.force)
    makers = {
        What.TRIALS: frames.trials_table,
        What.REPORTS: frames.reports_table,
        What.ATTEMPTS: frames.attempts_table,
    }
    with reading(wanted.storage) as connection:
        study = chosen_study(connection, wanted.name)
        with whole_file(to) as unfinished:
            rows = write(makers[wanted.what](connection, study), unfinished, to.suffix)
    note(f"wrote {count(rows, wanted.what.removesuffix('s'))} of {study.name} to {to}")


def _copier_of(to: str) -> SourcePlugin | None:
    """The plugin that copies studies to a destination: by its own name or by what it takes."""
    able = {name: each for name, each in offers_of(SourcePlugin).items() if each.copy}
    return able.get(to) or taking(to, able.values())


def _copy(copier: SourcePlugin, to: str, wanted: StudyExport) -> None:
    with reading(wanted.storage) as connection:
        study = chosen_study(connection, wanted.name)
    with closing(Store.open(wanted.storage, create=False)) as store:
        record = store.find_study(study.name)
        each_trial = store.each_trial(study.id)
        trials, where = named(copier.copy)(record, each_trial, to, replace=wanted.force)
    note(f"wrote {count(trials, 'trial')} of {study.name} to {where}")


def _send(wanted: StudyExport) -> None:
    from hpsearch.running.creation.study import spec_of
    from hpsearch.running.study_run.ownership import refuse_if_held
    from hpsearch.running.tracking.senders import Senders, refuse_missing

    trackers = () if wanted.to is None else _named(wanted.to)
    with reading(wanted.storage) as connection:
        name = chosen_study(connection, wanted.name).name
    with closing(Store.open(wanted.storage, create=False)) as store:
        record = store.find_study(name)
        trackers = trackers or spec_of(record).track
        if not trackers:
            what = f"there is no place to export to: the study file of {name} names no tracker"
            raise UserError(what, f"add --to with {DESTINATIONS}")
        refuse_if_held(store, name)
        refuse_missing(trackers)
        if not record.checkpoints:
            raise UserError(f"study {name} has no folder of its own", f"hpsearch resume {name}")
        log_as_notes()
        senders = Senders(store, name, record.checkpoints, trackers, None, again=wanted.force)
        try:
            senders.begin()
            sent = senders.end()
        except KeyboardInterrupt:
            what = "interrupted; what was sent stays. Continue with the same command"
            raise Interrupted(what) from None
    for place in sent:
        note(f"study {name} is in {place}")
    if len(sent) < len(trackers):
        raise Unreachable(f"not all of study {name} was sent", "try the same command again")


def _named(to: str) -> tuple[NamedTracker, ...]:
    try:
        return _TRACKERS.validate_python(yaml.safe_load(to))
    except yaml.YAMLError:
        hint = "write it as in a study file, such as {wandb: {project: demo}}"
        raise UserError("--to: cannot be read", hint) from None
    except ValidationError as error:
        problem = problems_of(error)[0]
        raise UserError(f"--to: {problem.what}", f"name {DESTINATIONS}") from None


HTML = (".html", ".htm")
MARKDOWN = (".md", ".markdown")


def report_study(name: str | None, out: Path | None, storage: str, *, force: bool) -> None:
    """Write the report of a study to a file, HTML or Markdown by its name, or to stdout."""
    if out is not None:
        if out.suffix.lower() not in (*HTML, *MARKDOWN):
            example = f"for example: -o {out.stem or 'report'}.html"
            raise UserError(f"{out}: reports are .html or .md files", example)
        refuse_taken(out, force=force)
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        data = report_data(connection, study, time.time())
    if out is None:
        sys.stdout.write(markdown_report(data))
        return
    text = html_report(data) if out.suffix.lower() in HTML else markdown_report(data)
    with whole_file(out) as unfinished:
        unfinished.write_text(text, "utf-8")
    note(f"wrote {out} ({size(len(text.encode()))})")
