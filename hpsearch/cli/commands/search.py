"""The commands that make studies and run them.

Each imports what it needs when it is called, so that `hpsearch --help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpsearch.cli.commands.app import SEARCH, app
from hpsearch.cli.options import (
    DEFAULT_STORAGE,
    LARGEST_COUNT,
    Address,
    Checkpoints,
    Enqueue,
    Force,
    MostCost,
    MostGpuHours,
    MostTrials,
    MostWallClock,
    Notify,
    OptionalStudyFile,
    Quiet,
    Storage,
    StudyFile,
    StudyName,
    TreeFormatOption,
    Workers,
    worker_count,
)
from hpsearch.cli.output import (
    TrainOn,
    TreeFormat,
)
from hpsearch.errors import UserError


@app.command(rich_help_panel=SEARCH)
def init(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The file to write, or its folder.")
    ] = Path("study.yaml"),
    kind: Annotated[
        str | None,
        typer.Option(help="The kind of the task, command or function. Default: by the data."),
    ] = None,
    command: Annotated[
        str | None, typer.Option(help="A command line whose numbers are searched.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The study's name.")] = None,
    train: Annotated[Path | None, typer.Option(help="The training data.")] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="The column with the texts; twice for pairs.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="The column with the labels; again for each of several."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A model to start from: a hub id, or a folder.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="The objective. Default: by the data.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE|URL",
            help="The file of a W&B sweep, or the URL of an Optuna storage.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a study file with comments, to start from."""
    from hpsearch.cli.study_files.init import (
        DataOptions,
        StudyOptions,
        write_from_command,
        write_from_program,
        write_starter,
    )

    data = DataOptions(train, tuple(text or ()), tuple(label or ()), model)
    wanted = StudyOptions(name, metric)
    if source is not None:
        if data.given or kind or command or metric:
            raise UserError("--from goes with --name and --force alone", "remove the other options")
        write_from_program(path, source, wanted, force=force)
        return
    if command is None:
        write_starter(path, kind, data, wanted, force=force)
        return
    if data.given or kind not in (None, "command"):
        message = "--command goes with --name, --metric and --force alone"
        raise UserError(message, "remove the other options")
    write_from_command(path, command, wanted, force=force)


@app.command(rich_help_panel=SEARCH)
def check(
    study: OptionalStudyFile = None,
    storage: Storage = DEFAULT_STORAGE,
    address: Address = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of study files, for editors.")
    ] = False,
) -> None:
    """Check a study file and its data, try one training step, and print the plan."""
    from hpsearch.cli.studies.check import check_study
    from hpsearch.cli.study_files.schema import print_schema

    if schema and study is not None:
        raise UserError("--schema goes without a study file", "remove the one or the other")
    if schema:
        print_schema()
        return
    if study is None:
        raise UserError("the study file is missing", "for example: hpsearch check study.yaml")
    check_study(study, storage, address)


@app.command(rich_help_panel=SEARCH)
def run(
    study: StudyFile,
    storage: Storage = DEFAULT_STORAGE,
    address: Address = None,
    workers: Workers = None,
    checkpoints: Checkpoints = None,
    enqueue: Enqueue = None,
    notify: Notify = None,
    quiet: Quiet = False,
) -> None:
    """Start a study from its file."""
    from hpsearch.cli.studies.run import RunOptions, run_study
    from hpsearch.tracking.delivery import recipient_of

    count, recipient = worker_count(workers), recipient_of(notify)
    options = RunOptions(storage, address, count, checkpoints, enqueue or [], quiet, recipient)
    run_study(study, options)


@app.command(rich_help_panel=SEARCH)
def resume(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    address: Address = None,
    workers: Workers = None,
    checkpoints: Checkpoints = None,
    enqueue: Enqueue = None,
    trials: MostTrials = None,
    gpu_hours: MostGpuHours = None,
    wall_clock: MostWallClock = None,
    cost: MostCost = None,
    notify: Notify = None,
    quiet: Quiet = False,
) -> None:
    """Continue a study that was interrupted, or give one more budget, running or finished."""
    from hpsearch.cli.studies.run import RunOptions, resume_study
    from hpsearch.tracking.delivery import recipient_of

    limits = {"trials": trials, "gpu_hours": gpu_hours, "wall_clock": wall_clock, "cost": cost}
    budget = {key: value for key, value in limits.items() if value is not None}
    count, recipient = worker_count(workers), recipient_of(notify)
    options = RunOptions(storage, address, count, checkpoints, enqueue or [], quiet, recipient)
    resume_study(name, options, budget)


@app.command(rich_help_panel=SEARCH)
def simulate(
    study: StudyFile,
    curves: Annotated[
        Path, typer.Option(metavar="TABLE", help="A .csv or .parquet file of curves.")
    ],
    workers: Workers = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Default: that of the study file.")
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, max=LARGEST_COUNT, help="The number of configurations to show.")
    ] = 5,
    format: TreeFormatOption = TreeFormat.TABLE,
) -> None:
    """Run a search on recorded learning curves, without training, to see what it would find."""
    from hpsearch.cli.simulate import simulate_study

    simulate_study(study, curves, worker_count(workers), seed, top, format)


@app.command(rich_help_panel=SEARCH)
def train(
    name: StudyName,
    trial: Annotated[
        int | None,
        typer.Option(
            min=0, max=LARGEST_COUNT, help="The trial. Default: what is expected to be best."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The folder for models. The first model goes into NAME/v1.")
    ] = Path("models"),
    data: Annotated[TrainOn, typer.Option(help="The data to train on.")] = TrainOn.TRAIN,
    export: Annotated[
        bool, typer.Option("--export", help="Also write the model for torch.export.")
    ] = False,
    as_trial: Annotated[
        int | None,
        typer.Option(
            "--as",
            metavar="NUMBER",
            min=0,
            max=LARGEST_COUNT,
            help="Instead, train this trial again, and exit with 1 if it differs.",
        ),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Train the best or a chosen configuration with the full budget, and keep the model."""
    from hpsearch.cli.studies.repeat import repeat_trial
    from hpsearch.cli.studies.train import FinalTraining, train_model

    if as_trial is None:
        train_model(name, FinalTraining(trial, out, data, export), storage)
        return
    if trial is not None or export or data is not TrainOn.TRAIN:
        raise UserError("--as keeps no model", "remove --trial, --data and --export")
    if not repeat_trial(name, as_trial, storage):
        raise typer.Exit(1)


@app.command("import", rich_help_panel=SEARCH)
def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A table (.csv, .tsv, .parquet), or the URL of an Optuna storage.",
        ),
    ],
    name: Annotated[str, typer.Option(help="The name of the new study.")],
    study: Annotated[str | None, typer.Option(help="The study in an Optuna storage.")] = None,
    params: Annotated[
        list[str] | None, typer.Option(help='Parameters: "lr=learning_rate, depth".')
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="The metric, or NAME=COLUMN; repeatable.")
    ] = None,
    direction: Annotated[
        list[str] | None, typer.Option(help="minimize or maximize; repeatable.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="The column that names the run of a row.")] = None,
    state: Annotated[str | None, typer.Option(help="The column of how a run ended.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check only.")] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Bring past runs of other programs in as a study, for queries and for warm starts."""
    from hpsearch.bridges.past_runs import Mapped, pairs
    from hpsearch.cli.studies.import_runs import ImportOptions, import_runs

    columns = pairs("--params", params or ())
    metrics = pairs("--metric", metric or ())
    mapped = Mapped(columns, metrics, tuple(direction or ()), run, state, study)
    options = ImportOptions(name, storage, mapped, dry_run)
    import_runs(source, options)
