"""The result of a study, printed when it has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

from hpsearch.cli.output import show, terminal_width
from hpsearch.cli.streams import ReaderGone
from hpsearch.errors import UserError
from hpsearch.result.reading import study_result
from hpsearch.result.study_result import StudyResult
from hpsearch.result.training import as_argument, to_train
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.standing import study_status
from hpsearch.store.store import Store
from hpsearch.terminal.result import result_tables


def print_result(store: Store, name: str, suggested: Callable[[str], str]) -> None:
    """Print the best configuration of a study with all that is known of it, and the next commands.
    `suggested` completes one, such as ``best NAME``, to a command for this database."""
    with store.reading() as connection:
        study = find_study(connection, name)
        result = study_result(connection, study)
        status = study_status(connection, study, result.ranked)
    # The study has ended as it has, whether or not somebody still reads this.
    with suppress(ReaderGone, UserError):
        commands = _next_commands(result, suggested)
        show(*result_tables(result, status, commands, terminal_width()))
        sys.stdout.flush()


def _next_commands(result: StudyResult, suggested: Callable[[str], str]) -> list[tuple[str, str]]:
    """The commands that most people want next, each with what it does."""
    study, name = result.study, as_argument(result.study.name)
    if not result.ranked:
        return [(suggested(f"trials {name}"), "what happened to each trial")]
    trial = None if study.has_best else result.ranked[0].trial.number
    others = (suggested(f"best --top 5 {name}"), "the best five, side by side")
    return [*to_train(study, trial, suggested), others]
