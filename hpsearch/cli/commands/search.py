"""The commands that make studies and run them.

Each imports what it needs when it is called, so that `hpsearch --help` answers at once.
"""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hpsearch.cli.commands.app import SEARCH, app, command
from hpsearch.cli.options import (
    LARGEST_COUNT,
    Address,
    BudgetLimits,
    Changed,
    DataOptions,
    FinalTraining,
    OptionalStudyFile,
    RunColumns,
    RunOptions,
    Storage,
    StudyFile,
    StudyName,
    StudyOptions,
)
from hpsearch.errors import UserError
from hpsearch.store.connecting.hints import DEFAULT_STORAGE


@command(app, SEARCH)
def init(
    wanted: StudyOptions,
    data: DataOptions,
    path: Annotated[
        Path, Argument(metavar="PATH", help="The file to write, or its folder.")
    ] = Path("study.yaml"),
    kind: Annotated[
        str | None, Option(help="The kind of the task, command or function. Default: by the data.")
    ] = None,
    command: Annotated[
        str | None, Option(help="A command line whose numbers are searched.")
    ] = None,
    source: Annotated[
        str | None,
        Option(
            "--from", metavar="FILE", help="A script of Optuna, a W&B sweep, or a shell's loops."
        ),
    ] = None,
) -> None:
    """Write a study file with comments, to start from."""
    from hpsearch.cli import init

    if source is not None:
        if data.given or kind or command:
            message = "--from goes with --name, --metric and --force alone"
            raise UserError(message, "remove the other options")
        init.write_from_program(path, source, wanted)
    elif command is None:
        init.write_starter(path, kind, data, wanted)
    elif data.given or kind not in (None, "command"):
        message = "--command goes with --name, --metric and --force alone"
        raise UserError(message, "remove the other options")
    else:
        init.write_from_command(path, command, wanted)


@command(app, SEARCH)
def check(
    study: OptionalStudyFile = None,
    storage: Storage = DEFAULT_STORAGE,
    address: Address = None,
    schema: Annotated[
        bool, Option("--schema", help="Print the JSON Schema of study files, for editors.")
    ] = False,
) -> None:
    """Check a study file and its data, try one training step, and print the plan."""
    from hpsearch.cli import init
    from hpsearch.cli.studies.check import check_study

    if schema and study is not None:
        raise UserError("--schema goes without a study file", "remove the one or the other")
    if schema:
        sys.stdout.write(init.schema())
        return
    if study is None:
        raise UserError("the study file is missing", "for example: hpsearch check study.yaml")
    check_study(study, storage, address)


@command(app, SEARCH, "studies.run:run_study")
def run(
    study: StudyFile,
    options: RunOptions,
    resume: Annotated[
        bool, Option("--resume", help="Continue the study if it is in the database.")
    ] = False,
    changed: Changed = False,
) -> None:
    """Start a study from its file."""


@command(app, SEARCH, "studies.run:resume_study")
def resume(
    name: StudyName,
    options: RunOptions,
    limits: BudgetLimits,
    finish: Annotated[
        int | None,
        Option(
            metavar="NUMBER",
            min=0,
            max=LARGEST_COUNT,
            help="A trial that paused or was stopped, to train to its end. A finished study goes "
            "on for it alone.",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help="The study file with changes of how trials are read and run, not of the search.",
        ),
    ] = None,
    retry: Annotated[
        str | None,
        Option(
            metavar="failed|NUMBERS|FILTER",
            help="Failed trials to run again under their numbers: all, such as 3,7, or by a filter "
            "as of `trials --where`.",
        ),
    ] = None,
    changed: Changed = False,
) -> None:
    """Continue a study that was interrupted, or give one more budget, running or finished."""


@command(app, SEARCH, "studies.train:train_model")
def train(name: StudyName, wanted: FinalTraining, storage: Storage = DEFAULT_STORAGE) -> None:
    """Train the best or a chosen configuration with the full budget, and keep the model."""


@command(app, SEARCH, "studies.import_runs:import_runs", name="import")
def import_(
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="A table (.csv, .tsv, .parquet), or the URL of an Optuna storage.",
        ),
    ],
    name: Annotated[str, Option(help="The name of the new study.")],
    columns: RunColumns,
    dry_run: Annotated[bool, Option("--dry-run", help="Read and check only.")] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Bring past runs of other programs in as a study, for queries and for warm starts."""
