"""`hpsearch ls`, `trials` and `show`: studies, trials, and one trial or several in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.options import Selection
from hpsearch.cli.output import Format, TreeFormat, emit, emit_tree, note, show, terminal_width
from hpsearch.cli.results.status import used
from hpsearch.cli.streams import held_back
from hpsearch.errors import UserError
from hpsearch.store.reading.best import details_again
from hpsearch.store.reading.logs import logs_of
from hpsearch.store.reading.queries import Rows, each_trial
from hpsearch.store.reading.standing import list_studies
from hpsearch.views.documents import comparison_document, study_document, trial_document
from hpsearch.views.result import MOST_COMPARED
from hpsearch.views.terminal import tables
from hpsearch.views.terminal import trial as view
from hpsearch.views.terminal.trial import comparison
from trials.checkpoints import folders


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


def print_trials(name: str | None, selection: Selection, format_: Format, storage: str) -> None:
    """Print the selected trials of a study, a table for each thousand of them."""
    with held_back(), reading(storage) as connection:
        study = chosen_study(connection, name)
        rows = each_trial(connection, study, **asdict(selection))
        if format_ is not Format.TABLE:
            emit(Rows(lambda: (row.as_plain() for row in rows)), format_)
            return
        is_empty = True
        for some in rows.parts():
            show(tables.trials(some, terminal_width()))
            is_empty = False
    if is_empty and selection.where:
        note(f"--where selects no trials of {study.name}")
    elif is_empty:
        note(f"no trials of {study.name} yet")


EXAMPLES = "for example: hpsearch show NAME 7, or hpsearch show NAME 7 12"


def name_and_numbers(words: Sequence[str]) -> tuple[str | None, list[int]]:
    """The study's name, None if it is not given, and the numbers of one trial or more. Raises
    UserError if the words of a command line are not that."""
    first, *rest = words
    name = None if _is_number(first) else first
    numbers = words if name is None else rest
    if not numbers or not all(map(_is_number, numbers)):
        message = f"'{' '.join(words)}' is not a study and the number of a trial"
        raise UserError(message, EXAMPLES)
    return name, [int(number) for number in numbers]


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10


def print_trial(name: str | None, number: int, format_: TreeFormat, storage: str) -> None:
    """Print a trial's parameters, reports, attempts and decisions. Raises UserError if there is no
    such trial."""
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        (detail,) = details_again(connection, study, [number])
    if format_ is TreeFormat.TABLE:
        logs = logs_of(study, detail)
        disk = _folder_bytes(detail.trial.checkpoint)
        show(*view.trial(detail, terminal_width(), disk, logs[-1] if logs else None))
    else:
        emit_tree(trial_document(study, detail), format_)


def _folder_bytes(checkpoint: str | None) -> int | None:
    """The bytes that the folder of a checkpoint takes; None if that is not known."""
    if not checkpoint:
        return None
    folder, _ = folders.split(checkpoint)
    return used(str(folder))


def print_comparison(
    name: str | None, numbers: Sequence[int], format_: TreeFormat, storage: str
) -> None:
    """Print what trials have in common and what differs. Raises UserError if there is no such
    trial, or they are one or too many."""
    if len(set(numbers)) < 2:
        raise UserError(f"trial {numbers[0]} is compared with itself", EXAMPLES)
    if len(numbers) > MOST_COMPARED:
        message = f"{len(numbers)} trials are too many to compare: {MOST_COMPARED} is the most"
        raise UserError(message, "hpsearch export writes the values of all trials")
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        trials = details_again(connection, study, numbers)
    if format_ is TreeFormat.TABLE:
        show(*comparison(trials, terminal_width()))
    else:
        emit_tree(comparison_document(study, trials), format_)
