"""The program `hpsearch`: its commands, and the one place where errors become exit codes.

Each command imports what it needs when it is called, so that `hpsearch --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

import hpsearch
from hpsearch.cli import streams
from hpsearch.cli.options import (
    DEFAULT_STORAGE,
    LARGEST_COUNT,
    Address,
    Checkpoints,
    Enqueue,
    Force,
    FormatOption,
    MostCost,
    MostGpuHours,
    MostTrials,
    MostWallClock,
    Notify,
    OptionalStudyName,
    Quiet,
    Storage,
    StudyFile,
    StudyName,
    TreeFormatOption,
    Watch,
    Where,
    Workers,
    limits_given,
    worker_count,
)
from hpsearch.cli.output import (
    ExportTo,
    Format,
    ReportFormat,
    TrainOn,
    TreeFormat,
    What,
    note,
)
from hpsearch.errors import ClusterLost, HpsearchError, UserError

app = typer.Typer(
    help=hpsearch.__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(help="Upgrade and check the database.", no_args_is_help=True)

_SEARCH, _RESULTS, _MAINTENANCE = "Search", "Results", "Maintenance"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code.

    0 is done, 1 a bug, 2 the user's mistake, 3 a database or cluster that cannot be reached, 4 a
    study that another driver owns, 130 an interruption, 141 results that nobody reads any more.
    """
    with streams.guarded():
        sys.exit(_exit_code(arguments))


def _exit_code(arguments: Sequence[str] | None) -> int | str | None:
    try:
        return _run(arguments)
    except streams.ReaderGone:
        return streams.READER_GONE
    except ClusterLost as error:
        note(f"hpsearch: {error}")
        with suppress(streams.ReaderGone, UserError):
            sys.stdout.flush()
        # An orderly exit would wait for threads of Ray, or crash on them.
        os._exit(error.exit_code)
    except HpsearchError as error:
        note(f"hpsearch: {error}")
        return error.exit_code


def _run(arguments: Sequence[str] | None) -> int | str | None:
    try:
        app(arguments, prog_name="hpsearch")
    except SystemExit as ended:
        sys.stdout.flush()
        return ended.code
    return 0


# ------------------------------------------------------------------------------------------- search


@app.command(rich_help_panel=_SEARCH)
def init(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The file to write, or its folder.")
    ] = Path("study.yaml"),
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="The kind of the task, command or function. Default: text_classification.",
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            help='A command line whose numbers are searched, such as: "python train.py --lr 0.1".',
        ),
    ] = None,
    train: Annotated[Path | None, typer.Option("--train", help="The training data.")] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            "--text",
            help="The column with the texts; twice for pairs. Default: guessed from the data.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            help="The column with the classes or numbers, or each column of 0 and 1 of several "
            "labels. Default: guessed from the data.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a study file with comments, to start from."""
    from hpsearch.cli.studies.init import TEXTS, DataOptions, write_from_command, write_starter

    data = DataOptions(train, tuple(text or ()), tuple(label or ()))
    if command is None:
        write_starter(path, kind or TEXTS[0], data, force=force)
        return
    if data.given or kind not in (None, "command"):
        raise UserError("--command needs no other option than --force", "remove the others")
    write_from_command(path, command, force=force)


@app.command(rich_help_panel=_SEARCH)
def check(study: StudyFile, storage: Storage = DEFAULT_STORAGE, address: Address = None) -> None:
    """Check a study file and its data, try one training step, and print the plan."""
    from hpsearch.cli.studies.check import check_study

    check_study(study, storage, address)


@app.command(rich_help_panel=_SEARCH)
def schema(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file to write, or its folder. Default: printed."),
    ] = None,
) -> None:
    """Print the JSON Schema of the study file, which editors use to complete and check it."""
    from hpsearch.cli.studies.schema import print_schema

    print_schema(out)


@app.command(rich_help_panel=_SEARCH)
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

    count = worker_count(workers)
    told = recipient_of(notify)
    options = RunOptions(storage, address, count, checkpoints, enqueue or [], quiet, told)
    run_study(study, options)


@app.command(rich_help_panel=_SEARCH)
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
    """Continue a study that was interrupted, or give a finished one more budget."""
    from hpsearch.cli.studies.run import RunOptions, resume_study
    from hpsearch.tracking.delivery import recipient_of

    budget = limits_given(trials, gpu_hours, wall_clock, cost)
    count = worker_count(workers)
    told = recipient_of(notify)
    options = RunOptions(storage, address, count, checkpoints, enqueue or [], quiet, told)
    resume_study(name, options, budget)


@app.command(rich_help_panel=_SEARCH)
def simulate(
    study: StudyFile,
    curves: Annotated[
        Path,
        typer.Option(
            "--curves", metavar="TABLE", help="A .csv or .parquet file of learning curves."
        ),
    ],
    workers: Workers = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, max=2**63 - 1, help="The seed. Default: that of the study file."
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            "--top", min=1, max=LARGEST_COUNT, help="The number of best configurations to show."
        ),
    ] = 5,
    format: TreeFormatOption = TreeFormat.TABLE,
) -> None:
    """Run a search on recorded learning curves, without training, to see what it would find."""
    from hpsearch.cli.simulate import simulate_study

    simulate_study(study, curves, worker_count(workers), seed, top, format)


@app.command(rich_help_panel=_SEARCH)
def train(
    name: StudyName,
    trial: Annotated[
        int | None,
        typer.Option(
            "--trial",
            min=0,
            max=LARGEST_COUNT,
            help="The number of the trial. Default: what is expected to be best.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", help="The folder for models. The first model goes into NAME/v1."),
    ] = Path("models"),
    data: Annotated[TrainOn, typer.Option("--data", help="The data to train on.")] = TrainOn.TRAIN,
    export: Annotated[
        ExportTo | None, typer.Option("--export", help="Also write the model in this format.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Train the best or a chosen configuration with the full budget, and keep the model."""
    from hpsearch.cli.studies.train import train_model

    train_model(name, trial, out, data, export, storage)


@app.command("import", rich_help_panel=_SEARCH)
def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A table (.csv, .tsv, .parquet), JSON lines of W&B (.jsonl), a folder of Ray Tune "
            "or W&B, or the URL of an Optuna storage.",
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="The name of the new study.")],
    study: Annotated[
        str | None, typer.Option("--study", help="The study in an Optuna storage.")
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option("--params", help='Parameters and their columns: "lr=learning_rate, depth".'),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="The metric, or NAME=COLUMN; again for each objective."),
    ] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option("--direction", help="minimize or maximize; again for each objective."),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="The column that names the run of a row.")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", help="The column that says how a run ended.")
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option("--resource", help="What says how far a run had trained, one row a report."),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option("--curve", help="Columns of a curve, such as: accuracy_{resource}"),
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="What the resource counts, such as epochs.")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option("--mapping", help="A YAML file with these options as keys.")
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option("--space", help="A study file whose space and objective the runs have."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check only.")] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Bring past runs of other programs in as a study, for queries and for warm starts."""
    from hpsearch.cli.studies.import_runs import ImportOptions, import_runs

    others = {"run": run, "state": state, "resource": resource, "curve": curve, "unit": unit}
    options = ImportOptions(
        name, storage, study, mapping, space, params, metric, direction, others, dry_run
    )
    import_runs(source, options)


@app.command("import-spec", rich_help_panel=_SEARCH)
def import_spec(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A sweep of W&B, a configuration of Hydra, or Python code of Ray Tune or Optuna.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The study file to write. Default: printed."),
    ] = None,
    force: Force = False,
) -> None:
    """Make a study file from that of another program; its code is read, and never run."""
    from hpsearch.cli.studies.import_spec import write_imported

    write_imported(source, out, force=force)


# ------------------------------------------------------------------------------------------ results


@app.command(rich_help_panel=_RESULTS)
def ls(storage: Storage = DEFAULT_STORAGE, format: FormatOption = Format.TABLE) -> None:
    """List the studies."""
    from hpsearch.cli.results.ls import print_studies

    print_studies(storage, format)


@app.command(rich_help_panel=_RESULTS)
def status(
    name: OptionalStudyName = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
    watch: Watch = False,
) -> None:
    """Show the progress of a study: trials, budget, running work and failures."""
    from hpsearch.cli.results.status import print_status, watch_status

    if watch:
        watch_status(name, storage, format)
    else:
        print_status(name, storage, format)


@app.command(rich_help_panel=_RESULTS)
def best(
    name: OptionalStudyName = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=1,
            max=LARGEST_COUNT,
            help="The number of trials to show. Default: 1, or the whole Pareto front.",
        ),
    ] = None,
    where: Where = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
    watch: Watch = False,
) -> None:
    """Show the configurations that are expected to be best when they are trained in full.

    As YAML, they can be trained with `python -m trials`.
    """
    from hpsearch.cli.results.best import print_best, watch_best

    if watch:
        watch_best(name, top, where, format, storage)
    else:
        print_best(name, top, where, format, storage)


@app.command(rich_help_panel=_RESULTS)
def trials(
    name: OptionalStudyName = None,
    where: Where = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", help='The order, such as: "value desc, learning_rate".'),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, max=LARGEST_COUNT, help="The largest number of trials to show."
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, max=LARGEST_COUNT, help="Show this many trials, the best first."
        ),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
    watch: Watch = False,
) -> None:
    """Show the trials of a study, filtered and sorted."""
    from hpsearch.cli.results.trials import Selection, print_trials, watch_trials

    selection = Selection(where, sort, limit, top)
    if watch:
        watch_trials(name, selection, format, storage)
    else:
        print_trials(name, selection, format, storage)


@app.command(rich_help_panel=_RESULTS)
def show(
    trial: Annotated[
        list[str],
        typer.Argument(metavar="[NAME] NUMBER", help="The study, and the number of the trial."),
    ],
    storage: Storage = DEFAULT_STORAGE,
    format: TreeFormatOption = TreeFormat.TABLE,
    watch: Watch = False,
) -> None:
    """Show everything that is recorded about one trial."""
    from hpsearch.cli.results.show import print_trial, watch_trial

    if watch:
        watch_trial(trial, format, storage)
    else:
        print_trial(trial, format, storage)


@app.command(rich_help_panel=_RESULTS)
def compare(
    trials: Annotated[
        list[str],
        typer.Argument(metavar="[NAME] NUMBER NUMBER", help="The study, and two trials or more."),
    ],
    storage: Storage = DEFAULT_STORAGE,
    format: TreeFormatOption = TreeFormat.TABLE,
) -> None:
    """Show trials side by side: what differs, and what each came to."""
    from hpsearch.cli.results.compare import print_comparison

    print_comparison(trials, format, storage)


@app.command(rich_help_panel=_RESULTS)
def logs(
    trial: Annotated[
        list[str],
        typer.Argument(metavar="[NAME] NUMBER", help="The study, and the number of the trial."),
    ],
    attempt: Annotated[
        int | None,
        typer.Option(
            "--attempt", min=1, max=LARGEST_COUNT, help="One of its attempts. Default: all."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until the trial has ended.")
    ] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Show what a trial has printed, and how each of its attempts ended."""
    from hpsearch.cli.results.logs import print_logs

    print_logs(trial, attempt, storage, follow=follow)


@app.command(rich_help_panel=_RESULTS)
def reproduce(
    trial: Annotated[
        list[str],
        typer.Argument(metavar="[NAME] NUMBER", help="The study, and the number of the trial."),
    ],
    until: Annotated[
        float | None,
        typer.Option("--until", help="Train up to this resource. Default: as far as the trial."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0.0,
            max=1.0,
            help="The share by which metrics may differ. Default: 0, the same bit for bit.",
        ),
    ] = 0.0,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            help="The only metric to compare. Default: all but those of time, memory and energy.",
        ),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    format: TreeFormatOption = TreeFormat.TABLE,
) -> None:
    """Train a trial again, outside of its study, and say whether it is the same.

    Exits with 0 if it is, 1 if it is not, and 2 if it cannot be trained again.
    """
    from hpsearch.cli.reproduce.command import reproduce_trial
    from hpsearch.cli.reproduce.verdict import Wanted

    same = reproduce_trial(trial, Wanted(until, tolerance, metric), format, storage)
    if not same:
        raise typer.Exit(1)


@app.command(rich_help_panel=_RESULTS)
def export(
    name: OptionalStudyName = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="The .csv or .parquet file to write.")
    ] = None,
    optuna: Annotated[
        str | None,
        typer.Option("--optuna", help="The URL of an Optuna storage to write a copy into."),
    ] = None,
    what: Annotated[
        What, typer.Option("--what", help="What to write to the file, one row each.")
    ] = What.TRIALS,
    force: Force = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Write a study to a CSV or Parquet file, or a copy of it for Optuna."""
    from hpsearch.cli.results.export import export_for_optuna, export_study, one_place

    match one_place(to, optuna, what):
        case Path() as file:
            export_study(name, file, what, storage, force=force)
        case url:
            export_for_optuna(name, url, storage, force=force)


@app.command(rich_help_panel=_RESULTS)
def report(
    name: OptionalStudyName = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The .html or .md file to write. Markdown: or stdout."),
    ] = None,
    format: Annotated[
        ReportFormat | None,
        typer.Option("--format", "-f", help="The format. Default: as the file's name says."),
    ] = None,
    force: Force = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Write what happened in a study as a page to send to others."""
    from hpsearch.cli.results.report import report_study

    report_study(name, out, format, storage, force=force)


@app.command(rich_help_panel=_RESULTS)
def dashboard(
    name: OptionalStudyName = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="The address to listen on. If other machines can reach it, a token is needed.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 takes a free one."),
    ] = 8080,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Serve Optuna's dashboard to this machine or, with a token, to others."""
    from hpsearch.cli.dashboard.command import serve_dashboard

    serve_dashboard(name, host, port, storage)


@app.command(rich_help_panel=_RESULTS)
def track(
    name: StudyName,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            help="A tracker, such as mlflow or {wandb: {project: demo}}. Can be repeated. "
            "Default: those of the study file.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Also send what was sent before, as after its loss there."),
    ] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Send a study that is not running to experiment trackers: all that they do not have yet."""
    from hpsearch.cli.studies.track import track_study

    track_study(name, to or [], storage, again=again)


# -------------------------------------------------------------------------------------- maintenance


@app.command(rich_help_panel=_MAINTENANCE)
def stop(
    name: StudyName,
    trial: Annotated[
        int | None,
        typer.Argument(
            metavar="NUMBER", min=0, help="One trial that is to end. Default: the whole study."
        ),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Ask the driver of a study to save everything and end; or end one of its trials."""
    from hpsearch.cli.studies.asking import stop_trial
    from hpsearch.cli.studies.control import stop_study

    if trial is None:
        stop_study(name, storage)
    else:
        stop_trial(name, trial, storage)


@app.command(rich_help_panel=_MAINTENANCE)
def enqueue(
    name: StudyName,
    configuration: Annotated[
        str,
        typer.Argument(
            metavar="CONFIGURATION", help='The parameters, such as "learning_rate=1e-4".'
        ),
    ] = "",
    like: Annotated[
        int | None,
        typer.Option("--like", min=0, help="A trial whose other parameters it has."),
    ] = None,
    why: Annotated[str, typer.Option("--why", help="The reason, for the record.")] = "",
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Let a running study try a configuration next; what is not given is drawn."""
    from hpsearch.cli.studies.asking import propose

    propose(name, configuration, like, why, storage)


@app.command(rich_help_panel=_MAINTENANCE)
def budget(
    name: StudyName,
    trials: MostTrials = None,
    gpu_hours: MostGpuHours = None,
    wall_clock: MostWallClock = None,
    cost: MostCost = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Raise limits of a study while it runs."""
    from hpsearch.cli.studies.asking import raise_budget

    raise_budget(name, limits_given(trials, gpu_hours, wall_clock, cost), storage)


@app.command(rich_help_panel=_MAINTENANCE)
def rm(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Do not remove the study's checkpoints.")
    ] = False,
) -> None:
    """Remove a study from the database, and its checkpoints."""
    from hpsearch.cli.studies.control import remove_study

    remove_study(name, storage, yes=yes, keep_checkpoints=keep_checkpoints)


app.add_typer(db, name="db", rich_help_panel=_MAINTENANCE)


@db.command("upgrade")
def db_upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Bring the database to the schema version of this program."""
    from hpsearch.cli.db import upgrade_database

    upgrade_database(storage)


@db.command("check")
def db_check(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The study to check. Default: all studies."),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Check the database and its checkpoints for damage."""
    from hpsearch.cli.db import check_database

    check_database(name, storage)
