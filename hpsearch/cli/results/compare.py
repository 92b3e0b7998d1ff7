"""`hpsearch show A B`: trials of a study side by side."""

from __future__ import annotations

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import TreeFormat, emit_tree, show, terminal_width
from hpsearch.documents.trials import comparison_document
from hpsearch.errors import UserError
from hpsearch.result.comparison import MOST_COMPARED
from hpsearch.store.reading.queries import trial_detail
from hpsearch.terminal.comparison import comparison


def are_several(words: list[str]) -> bool:
    """Tell if a command line names several trials, with or without a study before them."""
    return len(words) > 2 or (len(words) == 2 and _is_number(words[0]))


def print_comparison(words: list[str], format_: TreeFormat, storage: str) -> None:
    """Print what trials have in common and what differs.

    Args:
        words: The numbers of the trials, after the study's name where one is given.
        format_: How to print it.
        storage: The database's URL.

    Raises:
        UserError: `words` are not that, or there is no such trial.
    """
    name, numbers = _name_and_numbers(words)
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        trials = [trial_detail(connection, study, number) for number in numbers]
    if format_ is TreeFormat.TABLE:
        show(*comparison(trials, terminal_width()))
    else:
        emit_tree(comparison_document(study, trials), format_)


def _name_and_numbers(words: list[str]) -> tuple[str | None, list[int]]:
    """The study's name, None if it is not given, and the numbers; a name is no number."""
    first, *rest = words
    name = None if _is_number(first) else first
    numbers = rest if name is not None else words
    if len(set(numbers)) < 2 or not all(map(_is_number, numbers)):
        message = f"'{' '.join(words)}' is not a study and the numbers of two trials or more"
        raise UserError(message, "for example: hpsearch show NAME 7 12")
    if len(numbers) > MOST_COMPARED:
        message = f"{len(numbers)} trials are too many to compare: {MOST_COMPARED} is the most"
        raise UserError(message, "hpsearch export writes the values of all trials")
    return name, [int(number) for number in numbers]


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10
