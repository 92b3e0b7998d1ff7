"""`hpsearch show`: everything that is recorded about one trial."""

from __future__ import annotations

import re

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import TreeFormat, emit_tree, show, terminal_width
from hpsearch.cli.results.status import used
from hpsearch.documents.trials import trial_document
from hpsearch.errors import UserError
from hpsearch.store.reading.logs import logs_of
from hpsearch.store.reading.queries import trial_detail
from hpsearch.terminal import trial as view
from trials.checkpoints import folders

_NUMBER = re.compile(r"[0-9]{1,9}")


def print_trial(words: list[str], format_: TreeFormat, storage: str) -> None:
    """Print a trial's parameters, reports, attempts and decisions.

    Args:
        words: The trial's number, after the study's name where one is given.
        format_: How to print it.
        storage: The database's URL.

    Raises:
        UserError: `words` are not that, or there is no such trial.
    """
    name, number = name_and_number(words, "show")
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        detail = trial_detail(connection, study, number)
    if format_ is TreeFormat.TABLE:
        logs = logs_of(study, detail)
        disk = _folder_bytes(detail.trial.checkpoint)
        show(*view.trial(detail, terminal_width(), disk, logs[-1] if logs else None))
    else:
        emit_tree(trial_document(study, detail), format_)


def name_and_number(words: list[str], command: str) -> tuple[str | None, int]:
    """The study's name, None if it is not given, and the trial's number.

    Args:
        words: As they were typed.
        command: The command that they were typed for.

    Raises:
        UserError: They are not that.
    """
    *before, number = words
    if len(before) > 1 or not _NUMBER.fullmatch(number):
        message = f"'{' '.join(words)}' is not a study and the number of a trial"
        raise UserError(message, f"for example: hpsearch {command} NAME 7")
    return (before[0] if before else None), int(number)


def _folder_bytes(checkpoint: str | None) -> int | None:
    """What the folder of a checkpoint takes; None if that is not known."""
    if not checkpoint:
        return None
    folder, _ = folders.split(checkpoint)
    return used(str(folder))
