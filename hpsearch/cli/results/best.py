"""`hpsearch best`: the best configurations, to read or to train; the result that `run` prints."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.options import Best
from hpsearch.cli.output import Format, emit, emit_yaml, note, show, terminal_width
from hpsearch.cli.streams import ReaderGone
from hpsearch.domain.facts import ErrorKind
from hpsearch.errors import UserError
from hpsearch.store.reading.attempts import recorded_arithmetic
from hpsearch.store.reading.queries import StudyHead, TrialRow, find_study
from hpsearch.store.reading.status import StudyStatus, next_hour_of, study_status, study_summary
from hpsearch.store.store import Store
from hpsearch.study_file import space as spaces
from hpsearch.study_file.reading import space_in
from hpsearch.views.documents import best_documents
from hpsearch.views.result import StudyResult, as_argument, study_result, to_train
from hpsearch.views.terminal import tables
from hpsearch.views.terminal.status import result_tables
from hpsearch.views.words import how_sure, next_hour, opening
from trials.checkpoints.folders import is_there
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.running.arithmetic import Arithmetic

_DATA_SUFFIXES = frozenset({".csv", ".tsv", ".parquet", ".json", ".jsonl"})


def print_best(name: str | None, wanted: Best, format: Format, storage: str) -> None:
    """Print the best trials, best first, or the front; as YAML, the settings that train them."""
    settings_of_all = []
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        result = study_result(connection, study, wanted.top or 1, where=wanted.where)
        is_said = format is Format.TABLE and wanted.where is None
        more = next_hour_of(connection, study) if is_said else None
        summary = study_summary(connection, study, result.ranked) if is_said else None
        if format is Format.YAML:
            for each in result.shown(wanted.top):
                recorded = recorded_arithmetic(connection, study, each.trial.number)
                settings_of_all.append(settings(study, each.trial, recorded))
    if format is Format.YAML and not result.ranked:
        see = f"see its progress: hpsearch status {study.name}"
        raise UserError(_nothing(study, wanted), see)
    if format is Format.YAML:
        emit_yaml(*settings_of_all)
    elif format is not Format.TABLE:
        emit(best_documents(result, wanted.top), format)
    elif result.ranked:
        if summary is not None:
            show("".join(opening(result, summary)))
        objectives = ["value"] if len(result.metrics) == 1 else result.metrics
        shown = result.shown(wanted.top)
        show(tables.best(shown, terminal_width(), objectives, result.seen_at))
        for line in how_sure(result):
            note(line)
        if said := next_hour(more):
            note(said)
    else:
        note(_nothing(study, wanted))


def _nothing(study: StudyHead, wanted: Best) -> str:
    selected = " among those that --where selects" if wanted.where else ""
    return f"no trial of {study.name} has a value yet{selected}"


def settings(study: StudyHead, trial: TrialRow, recorded: Arithmetic | None) -> dict[str, Any]:
    """The file with which `python -m trials` trains a trial's configuration, computing as recorded.
    Raises UserError if the study was not made from a study file."""
    spec = study.content
    if "task" not in spec:
        message = f"study {study.name} was not made from a study file, so it has no task to train"
        raise UserError(message, "print the parameters with --format json")
    fixed = spec.get("settings") or {}
    space, _ = space_in(spec.get("space"))
    # A training alone is measured in the same way as all trials of the study.
    known = BUILT_IN.get(spec["task"]["kind"])
    table = None if known is None else known.settings
    shared = spaces.largest(space, fixed, table)
    task = spec["task"]
    if study.base is not None and task["kind"] == COMMAND.kind:
        task = {**task, "cwd": str(Path(study.base) / task.get("cwd", "."))}
    else:
        task = {key: _absolute(value, study.base) for key, value in task.items()}
    written = {
        "task": task,
        "settings": {**shared, **fixed, **trial.params},
        "objective": spec["objective"],
        "budget": {"per_trial": spec["budget"]["per_trial"]},
        "seed": trial.seed,
    }
    if study.base is not None and known is None and spec["task"]["kind"] != COMMAND.kind:
        written["base"] = study.base
    if recorded is not None:
        written["arithmetic"] = recorded.as_plain()
    return written


def _absolute(value: Any, base: str | None) -> Any:
    if base is None or not isinstance(value, str):
        return value
    path = Path(base) / value
    return str(path) if path.suffix in _DATA_SUFFIXES or is_there(path) else value


def print_result(store: Store, name: str, suggested: Callable[[str], str]) -> None:
    """Print the best configuration of a study with all that is known of it, and the next commands.
    `suggested` completes one, such as ``best NAME``, to a command for this database."""
    with store.reading() as connection:
        study = find_study(connection, name)
        result = study_result(connection, study)
        status = study_status(connection, study, result.ranked)
    # The study has ended as it has, whether or not somebody still reads this.
    with suppress(ReaderGone, UserError):
        commands = _next_commands(result, status, suggested)
        show(*result_tables(result, status, commands, terminal_width()))
        sys.stdout.flush()


def _next_commands(
    result: StudyResult, status: StudyStatus, suggested: Callable[[str], str]
) -> list[tuple[str, str]]:
    study, name = result.study, as_argument(result.study.name)
    again = []
    if any(not ErrorKind(each.kind).of_configuration for each in status.failures):
        again = [(suggested(f"resume {name} --retry failed"), "what failed, once it is mended")]
    if not result.ranked:
        return [(suggested(f"trials {name}"), "what happened to each trial"), *again]
    trial = None if study.has_best else result.ranked[0].trial.number
    others = (suggested(f"best --top 5 {name}"), "the best five, side by side")
    return [*to_train(study, trial, suggested), others, *again]
