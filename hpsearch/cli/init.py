"""`hpsearch init`: write a study file with comments, to start from, with its JSON Schema."""

import json
import os
import re
from pathlib import Path

from hpsearch.cli.options import DataOptions, StudyOptions
from hpsearch.cli.output import note, refuse_taken, whole_file
from hpsearch.errors import UserError
from hpsearch.study_file.schema import study_file_schema
from hpsearch.study_file.starters import command_lines, shell_loops
from hpsearch.study_file.starters.starters import STARTERS, objective, quoted, starter
from hpsearch.study_file.text import text_of
from trials.descriptions.command_line import BUDGET

SCHEMA_FILE = "hpsearch.schema.json"
"""The file beside a study file that the study file's first line refers to."""
FIRST_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}"
"""The comment that leads editors to the schema."""


def schema() -> str:
    return json.dumps(study_file_schema(), indent=1) + "\n"


TEXTS = ("text_classification", "text_regression")
LOOKED_AT = (*TEXTS, "tabular")
"""The kinds whose data is looked at: their columns are guessed, and the rest follows from them."""
IMAGES = "image_classification"
WITH_MODEL = (*TEXTS, "token_classification", "language_modeling", "sequence_to_sequence")
PLAIN_NAMES = re.compile(r"(train|training|data|dataset|all)?", re.IGNORECASE)
"""Names of data files that say nothing of the data."""


def write_starter(path: Path, kind: str | None, data: DataOptions, wanted: StudyOptions) -> None:
    """Write a study file, and the schema for editors beside it; a folder gets a study.yaml. The
    kind is one of `STARTERS`; without one the data decides. Raises UserError if the file exists or
    cannot be written, or the data cannot be read or its columns cannot be guessed."""
    path = _file_at(path)
    refuse_taken(path, force=wanted.force)
    names = {"study": quoted(wanted.name or _name_of(data.train))}
    if data.train is not None:
        names["train"] = quoted(os.path.relpath(data.train.resolve(), path.resolve().parent))
    if data.model not in (None, "scratch"):
        names["model"] = quoted(data.model)
    if kind is None and data.train is not None and _holds_images(data.train):
        kind = IMAGES
        note(f"the kind is {kind}")
    if data.train is not None and kind in (None, *LOOKED_AT):
        kind, found = _looked_at(kind, data.train, data, wanted.metric)
        names = found | names
    else:
        kind = kind or TEXTS[0]
        _refuse_options(kind, data)
        given = {"text": data.text, "label": data.label}
        names |= {name: quoted(*columns) for name, columns in given.items() if columns}
        variant = "several labels" if len(data.label or ()) > 1 else kind
        names |= objective(variant, wanted.metric)
    _write_both(path, starter(kind, **names), force=wanted.force)


def _holds_images(train: Path) -> bool:
    """True of a folder with folders, and of a file of arrays: data of no other kind of task."""
    if train.is_dir():
        return any(each.is_dir() for each in train.iterdir())
    return train.suffix.lower() == ".npz"


def _looked_at(
    kind: str | None, train: Path, data: DataOptions, metric: str | None
) -> tuple[str, dict[str, str]]:
    from hpsearch.study_file.starters import data as training_data

    table = training_data.read(train)
    kind = kind or training_data.kind_of(table, data.text or (), data.label or ())
    _refuse_options(kind, data)
    task = training_data.TaskData(
        train, table, tuple(data.text or ()), tuple(data.label or ()), data.model
    )
    names, guessed = training_data.names_of(task, kind, metric)
    if guessed is not None:
        note(f"the kind is {kind}; what is learnt is column {guessed} (--label names another one)")
    return kind, names


def _name_of(train: Path | None) -> str:
    if train is None:
        return "my-study"
    place = train.resolve()
    name = place.parent.name if PLAIN_NAMES.fullmatch(place.stem) else place.stem
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:90] or "my-study"


def _file_at(path: Path) -> Path:
    try:
        return path / "study.yaml" if path.is_dir() else path
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "choose another name") from None


def _write_both(path: Path, content: str, *, force: bool) -> None:
    refuse_taken(path, force=force)
    with whole_file(path) as unfinished, whole_file(path.parent / SCHEMA_FILE) as beside:
        unfinished.write_text(f"{FIRST_LINE}\n{content}", encoding="utf-8")
        beside.write_text(schema(), encoding="utf-8")
    note(f"wrote {path}, and {SCHEMA_FILE}, which editors use to complete and check it")
    note(f"edit it, then run: hpsearch check {path}")


def write_from_command(
    path: Path, command: str | shell_loops.ShellGrid, wanted: StudyOptions
) -> None:
    """Write a study file that searches the numbers of a command line, or those of a sweep. The
    command runs for a short while, to see what it prints. Raises UserError if it has nothing to
    search, or as `write_starter`."""
    from hpsearch.running.rehearsal import first_look

    path = _file_at(path)
    refuse_taken(path, force=wanted.force)
    grid = shell_loops.ShellGrid
    sweep = command if isinstance(command, grid) else shell_loops.sweep_in(command) or grid(command)
    folder = path.resolve().parent
    found = command_lines.found_in(sweep.line, sweep.grids, folder)
    note(f"trying the command for at most {first_look.LIMIT_S:g} s, to see what it prints ...")
    flag = None if "{seed}" in found.run else first_look.seed_flag(found.words, folder)
    if flag is not None:
        found.words += [flag, "{seed}"]
    metric = wanted.metric or objective("command", None)["metric"]
    given = {**found.first_values, BUDGET: found.total}
    reports = first_look.reports_of(found.run, given, folder, metric, found.unit)
    names = found.as_names()
    if reports:
        best = reports[0]
        names["report"] += f"\n  {best.key}"
        if wanted.metric not in (None, best.metric):
            note(f"{metric} is not printed; the objective is {best.metric}, change it if need be")
        metric = best.metric
        note(f"report: {best.reading}")
    names |= {"study": quoted(wanted.name or _name_of(None)), **objective("command", metric)}
    _write_both(path, starter("command", **names), force=wanted.force)
    for text in command_lines.remarks(found, has_reports=bool(reports)):
        note(text)
    for together in sweep.together():
        note(f"the script takes {' and '.join(together)} together; the study combines them freely")


def write_from_program(path: Path, source: str, wanted: StudyOptions) -> None:
    """Write the study file that another program's search becomes, and say what it lacks: a W&B
    sweep, a script of Optuna's, or one of a shell with loops. Raises UserError if it cannot be read
    or has nothing to search, or as `write_starter`."""
    from hpsearch.running.creation.sources import translated

    file = Path(source)
    if file.is_file() and shell_loops.is_script(file.name, text_of(file)):
        sweep = shell_loops.sweep_in(text_of(file))
        if sweep is None:
            raise UserError(f"{file} has no loop over values", "give its command to --command")
        write_from_command(path, sweep, wanted)
        return
    if wanted.metric is not None:
        raise UserError("only the loops of a script go with --metric", "leave it out")
    path = _file_at(path)
    refuse_taken(path, force=wanted.force)
    text, remarks = translated(source, wanted.name, path.parent)
    _write_both(path, text, force=wanted.force)
    for remark in remarks:
        note(remark)


def _refuse_options(kind: str, data: DataOptions) -> None:
    if kind not in STARTERS:
        message = f"there is no starter for tasks of the kind {kind!r}"
        raise UserError(message, f"use one of {', '.join(STARTERS)}")
    if kind in ("function", "command") and data.given:
        message = "--train, --text, --label and --model are for built-in tasks"
        raise UserError(message, "your own code reads its data")
    for option, given, kinds in (
        ("--text", data.text, TEXTS),
        ("--label", data.label, LOOKED_AT),
        ("--model", data.model, WITH_MODEL),
    ):
        if given and kind not in kinds:
            message = f"{option} is for {', '.join(kinds)}, and the task is {kind}"
            raise UserError(message, "leave it out, and edit the study file once it is written")
