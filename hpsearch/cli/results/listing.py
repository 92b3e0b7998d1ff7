"""`hpsearch ls`, `status`, `trials` and `show`: studies, and one trial or several in full."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live

from hpsearch.cli import output
from hpsearch.cli.opening import chosen_study, reading, waiting
from hpsearch.cli.options import Selection
from hpsearch.cli.output import Format, TreeFormat, note, show, terminal_width
from hpsearch.cli.streams import held_back
from hpsearch.domain.plugins.queued import QueuedJob
from hpsearch.errors import NoDatabase, StudyNotFound, UserError
from hpsearch.store.reading.attempts import logs_of, revision_rows
from hpsearch.store.reading.best import details_again
from hpsearch.store.reading.queries import Rows, each_trial, find_study
from hpsearch.store.reading.rounds import over_rounds
from hpsearch.store.reading.status import list_studies, study_status
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.views import documents, words
from hpsearch.views.live import EVERY_S, panel_of
from hpsearch.views.result import MOST_COMPARED
from hpsearch.views.terminal import status, tables, trial
from trials.checkpoints import folders


def print_studies(storage: str, format: Format) -> None:
    with reading(storage) as connection:
        studies = list_studies(connection)
    if format is not Format.TABLE:
        output.emit([documents.study_document(each) for each in studies], format)
    elif studies:
        show(tables.studies(studies, terminal_width()))
    else:
        note("no studies yet; start one with: hpsearch run STUDY.yaml")


def print_status(
    name: str | None, storage: str, format: TreeFormat, watch: bool, beliefs: bool
) -> None:
    """Print a study's trials by state, its best trial, its budget, running work and failures; with
    `watch`, until no driver works on it any more. With `beliefs` what its search believes."""
    if beliefs and watch:
        raise UserError("beliefs are printed once", "leave out --watch or --beliefs")
    if beliefs:
        from hpsearch.views.beliefs import beliefs_document  # it imports the model

        with closing(Store.open(storage, create=False)) as store, store.reading() as connection:
            study = chosen_study(connection, name)
            output.emit_tree(beliefs_document(store, study.name), format)
        return
    if watch:
        _watch_status(name, storage, format)
        return
    try:
        with reading(storage) as connection:
            study = chosen_study(connection, name)
            found = study_status(connection, study)
            trust = study_trust(connection, study)
    except (NoDatabase, StudyNotFound):
        job = waiting(name, storage)
        if job is None:
            raise
        _print_waiting(job, format)
        return
    queued = None
    if found.summary.head.driver is None and output.was_submitted():
        queued = waiting(study.name, storage)
    disk = found.summary.checkpoint_bytes
    if disk is None:  # no driver has recorded it
        disk = _used(found.summary.head.checkpoints)
    if format is TreeFormat.TABLE:

        def suggested(text: str) -> str:
            waits = queued and f"{found.summary.state}; {queued.in_words}"
            return waits or output.suggested(text)

        show(*status.status(found, time.time(), terminal_width(), disk, trust, suggested))
    else:
        document = documents.status_document(found, trust, disk)
        output.emit_tree(document | {"queue": queued and queued.as_plain()}, format)


def _print_waiting(job: QueuedJob, format: TreeFormat) -> None:
    if format is TreeFormat.TABLE:
        show(tables.fact_table({"study": job.study, "state": job.in_words}, terminal_width()))
    else:
        plain = {"study": job.study, "state": "queued", "driver": None, "queue": job.as_plain()}
        output.emit_tree(plain, format)


def _watch_status(name: str | None, storage: str, format: TreeFormat) -> None:
    """As a table it is drawn in place on a terminal, and elsewhere printed again when it has
    changed. As JSON, it is a line for each change. Raises UserError for another format."""
    if format is TreeFormat.YAML:
        hint = "use --format json, which prints a line for each change"
        raise UserError("--watch does not print yaml", hint)
    console = Console(highlight=False)
    is_drawn = format is TreeFormat.TABLE and console.is_terminal
    live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
    before: dict[str, Any] | None = None
    with closing(Store.open(storage, create=False)) as store:
        with store.reading() as connection:
            study = chosen_study(connection, name)
        with live if is_drawn else nullcontext():
            for document, parts in _looks(store, study.name):
                if is_drawn:
                    live.update(Group(*parts), refresh=True)
                elif document != before and format is TreeFormat.JSON:
                    output.emit_line(document)
                elif document != before:
                    show(*parts)
                before = document


def _looks(store: Store, name: str) -> Iterator[tuple[dict[str, Any], list[RenderableType]]]:
    """The study every few seconds, and once more when its driver has left: as a document, and as
    parts to draw. No transaction is open meanwhile: a pager may wait."""
    while True:
        with store.reading() as connection:
            study = find_study(connection, name)
            found = study_status(connection, study)
            disk, now = found.summary.checkpoint_bytes, time.time()
            document = documents.status_document(found, study_trust(connection, study), disk)
            if found.summary.head.driver is not None:
                parts = [panel_of(connection, study, found)]
            else:
                parts = status.status(found, now, terminal_width(), disk, None, output.suggested)
        yield document, parts
        if study.driver is None:
            return
        time.sleep(EVERY_S)


def print_trials(name: str | None, selection: Selection, format: Format, storage: str) -> None:
    """Print the selected trials of a study, a table for each thousand of them."""
    with held_back(), reading(storage) as connection:
        study = chosen_study(connection, name)
        rows = each_trial(connection, study, **asdict(selection))
        if format is not Format.TABLE:
            output.emit(Rows(lambda: (row.as_plain() for row in rows)), format)
            return
        is_empty = True
        for some in rows.parts():
            show(tables.trials(some, study.metric, terminal_width()))
            is_empty = False
    if is_empty and selection.where:
        note(f"--where selects no trials of {study.name}")
    elif is_empty:
        note(f"no trials of {study.name} yet")


EXAMPLES = "for example: hpsearch show NAME 7, or hpsearch show NAME 7 12"


def name_and_numbers(words: Sequence[str]) -> tuple[str | None, list[int]]:
    """The study's name, if it is given, and the numbers of trials. Raises UserError."""
    first, *rest = words
    name = None if _is_number(first) else first
    numbers = words if name is None else rest
    if not numbers or not all(map(_is_number, numbers)):
        message = f"'{' '.join(words)}' is not a study and the number of a trial"
        raise UserError(message, EXAMPLES)
    return name, [int(number) for number in numbers]


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10


def print_trial(name: str | None, number: int, format: TreeFormat, storage: str) -> None:
    """Print a trial's parameters, reports, attempts and decisions. Raises UserError."""
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        (detail,) = details_again(connection, study, [number])
        over = over_rounds(connection, study, number)
    if format is TreeFormat.TABLE:
        logs = logs_of(study, detail)
        checkpoint = detail.trial.checkpoint
        disk = _used(str(folders.split(checkpoint)[0])) if checkpoint else None
        show(*trial.trial(detail, terminal_width(), disk, logs[-1] if logs else None))
        if over is not None:
            note(words.over_rounds(over, study.budget))
    else:
        output.emit_tree(documents.trial_document(study, detail), format)


def print_revisions(name: str, number: int | None, format: TreeFormat, storage: str) -> None:
    """Print the changes of code that a study has tested, or the patch of one. Raises UserError."""
    with reading(storage) as connection:
        found = revision_rows(connection, chosen_study(connection, name))
    if number is not None:
        if number > len(found):
            raise UserError(f"study {name} has no revision {number}", f"it has {len(found)}")
        sys.stdout.write(found[number - 1]["patch"])
    elif format is not TreeFormat.TABLE:
        output.emit_tree({"study": name, "revisions": found}, format)
    else:
        show(tables.revisions(found, terminal_width()))


def print_comparison(
    name: str | None, numbers: Sequence[int], format: TreeFormat, storage: str
) -> None:
    """Print what differs between trials. Raises UserError if they are one or too many."""
    if len(set(numbers)) < 2:
        raise UserError(f"trial {numbers[0]} is compared with itself", EXAMPLES)
    if len(numbers) > MOST_COMPARED:
        message = f"{len(numbers)} trials are too many to compare: {MOST_COMPARED} is the most"
        raise UserError(message, "hpsearch export writes the values of all trials")
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        trials = details_again(connection, study, numbers)
    if format is TreeFormat.TABLE:
        show(*trial.comparison(trials, terminal_width()))
    else:
        output.emit_tree(documents.comparison_document(study, trials), format)


def _used(folder: str | None) -> int | None:
    """The bytes that a folder of checkpoints takes; None if it cannot be read from here."""
    if folder is None:
        return None
    try:
        return folders.used_bytes(folder)
    except Exception:  # noqa: BLE001 - each store has errors of its own
        return None
