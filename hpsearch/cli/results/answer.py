"""The answer of a study, printed when it has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from sqlalchemy import Connection

from hpsearch.cli.output import show, terminal_width
from hpsearch.cli.results.best import RIVALS, objectives
from hpsearch.cli.streams import ReaderGone
from hpsearch.errors import UserError
from hpsearch.ranking.selection import Ranked
from hpsearch.store.reading.queries import StudyHead, TrialRow, best_trials, find_study
from hpsearch.store.reading.standing import study_status
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.terminal.answer import StudyAnswer, answer
from hpsearch.words.answer import default_of
from trials.descriptions.builtin import BUILT_IN


def print_answer(store: Store, name: str, suggested: Callable[[str], str]) -> None:
    """Print the best configuration of a study with what is known of it, and the next commands.

    Args:
        store: The database.
        name: The study.
        suggested: Completes a command, such as ``best NAME``, to one for this database.
    """
    with store.reading() as connection:
        study = find_study(connection, name)
        found = _answer(connection, study, suggested)
    # The study has ended as it has, whether or not somebody still reads this.
    with suppress(ReaderGone, UserError):
        show(*answer(found, terminal_width()))
        sys.stdout.flush()


def _answer(
    connection: Connection, study: StudyHead, suggested: Callable[[str], str]
) -> StudyAnswer:
    several = len(study.directions) > 1
    ranked = best_trials(connection, study, None if several else RIVALS)
    metrics = objectives(study) if several or not study.metric else [study.metric]
    return StudyAnswer(
        status=study_status(connection, study),
        ranked=ranked,
        default=None if several else default_of(connection, study),
        rungs=study_trust(connection, study),
        objectives=list(zip(metrics, study.directions, strict=True)),
        next_commands=_next_commands(study, suggested, ranked),
    )


def _next_commands(
    study: StudyHead, suggested: Callable[[str], str], ranked: Sequence[Ranked[TrialRow]]
) -> list[tuple[str, str]]:
    """The two commands that most people want next, each with what it does."""
    if not ranked:
        return [(suggested(f"trials {study.name}"), "what happened to each trial")]
    others = (suggested(f"best {study.name} --top 5"), "the best five, side by side")
    best = ranked[0].trial
    if best.continues is not None and len(study.directions) == 1:
        return [(suggested(f"show {study.name} {best.number}"), "how it was trained"), others]
    if study.written.get("task", {}).get("kind") in BUILT_IN and len(study.directions) == 1:
        return [(suggested(f"train {study.name}"), "trains it in full and keeps the model"), others]
    settings = suggested(f"best {study.name} --format yaml")
    return [(f"{settings} > best.yaml", "its settings, as a file"), others]
