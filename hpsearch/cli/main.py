"""The program `hpsearch`: its commands and options, and the one place where errors become messages and exit codes.

Each command imports what it needs when it is called, so that `hpsearch --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import hpsearch
from hpsearch.cli.output import ExportTo, Format, TrainOn, TreeFormat, What, note
from hpsearch.errors import ClusterLost, HpsearchError, UserError

app = typer.Typer(
    help=hpsearch.__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(help="Look after the database itself.", no_args_is_help=True)

_RUN, _READ, _CHANGE = "Search", "Look", "Look after"

Storage = Annotated[
    str,
    typer.Option("--storage", envvar="HPSEARCH_STORAGE", help="The database: sqlite:///FILE or postgresql://…"),
]
Address = Annotated[
    str | None, typer.Option("--address", envvar="RAY_ADDRESS", help="The Ray cluster; without it, this machine.")
]
Workers = Annotated[str | None, typer.Option("--workers", metavar="N|auto", help="Trials side by side.")]
Checkpoints = Annotated[str | None, typer.Option("--checkpoints", help="The folder for checkpoints.")]
Enqueue = Annotated[
    list[str] | None, typer.Option("--enqueue", help='Try this first: "learning_rate=1e-4, batch_size=32". Repeatable.')
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no live progress.")]
Name = Annotated[str | None, typer.Argument(metavar="NAME", help="The study; may be left out where there is only one.")]
TheName = Annotated[str, typer.Argument(metavar="NAME", help="The study.")]
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, such as study.yaml.")]
Where = Annotated[str | None, typer.Option("--where", help="Such as: \"learning_rate < 1e-4 and state = 'complete'\".")]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print it.")]
TreeFormatOption = Annotated[TreeFormat, typer.Option("--format", "-f", help="How to print it.")]

DEFAULT_STORAGE = "sqlite:///hpsearch.db"

_MOST = 2**31 - 1
"""The largest number of a trial, or of rows, that both databases count to."""

MOST_WORKERS = 100_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 done, 1 a bug, 2 the user's mistake, 3 unreachable, 4 held, 130 interrupted."""
    try:
        app(arguments, prog_name="hpsearch")
    except HpsearchError as error:
        note(f"hpsearch: {error}")
        if isinstance(error, ClusterLost):  # an orderly exit would wait for threads of Ray, or crash on them
            sys.stdout.flush()
            os._exit(error.exit_code)
        sys.exit(error.exit_code)


# ------------------------------------------------------------------------------------------------------- search


@app.command(rich_help_panel=_RUN)
def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The file, or its folder.")] = Path("study.yaml"),
    kind: Annotated[str, typer.Option("--kind", help="The kind of its task, or function.")] = "text_classification",
    train: Annotated[Path | None, typer.Option("--train", help="The training data.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="Its column with the texts; else guessed.")] = None,
    label: Annotated[str | None, typer.Option("--label", help="Its column with the classes; else guessed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write a commented study file to start from."""
    from hpsearch.cli import init as command

    command.init(path, kind, train, text, label, force=force)


@app.command(rich_help_panel=_RUN)
def check(study: StudyFile, storage: Storage = DEFAULT_STORAGE, address: Address = None) -> None:
    """Find every mistake before anything is paid for, and say what a study would do."""
    from hpsearch.cli import check as command

    command.check(study, storage, address)


@app.command(rich_help_panel=_RUN)
def run(
    study: StudyFile,
    storage: Storage = DEFAULT_STORAGE,
    address: Address = None,
    workers: Workers = None,
    checkpoints: Checkpoints = None,
    enqueue: Enqueue = None,
    quiet: Quiet = False,
) -> None:
    """Start a study from its file."""
    from hpsearch.cli import run as command

    command.run(study, storage, address, _count(workers), checkpoints, enqueue or [], quiet)


@app.command(rich_help_panel=_RUN)
def resume(
    name: TheName,
    storage: Storage = DEFAULT_STORAGE,
    address: Address = None,
    workers: Workers = None,
    checkpoints: Checkpoints = None,
    enqueue: Enqueue = None,
    trials: Annotated[int | None, typer.Option("--trials", help="From now on its budget, in all.")] = None,
    gpu_hours: Annotated[float | None, typer.Option("--gpu-hours", help="The same of GPU time.")] = None,
    wall_clock: Annotated[str | None, typer.Option("--wall-clock", help="The same of time, such as 4h.")] = None,
    cost: Annotated[float | None, typer.Option("--cost", help="The same of money.")] = None,
    quiet: Quiet = False,
) -> None:
    """Go on with a study that was interrupted, or with more budget with one that has ended."""
    from hpsearch.cli import run as command

    limits = {"trials": trials, "gpu_hours": gpu_hours, "wall_clock": wall_clock, "cost": cost}
    budget = {key: value for key, value in limits.items() if value is not None}
    command.resume(name, storage, address, _count(workers), checkpoints, enqueue or [], budget, quiet)


@app.command(rich_help_panel=_RUN)
def simulate(
    study: StudyFile,
    curves: Annotated[Path, typer.Option("--curves", metavar="TABLE", help="A .csv or .parquet file of curves.")],
    workers: Workers = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=2**63 - 1, help="Instead of the study file's.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, max=_MOST, help="How many of the best.")] = 5,
    format: TreeFormatOption = TreeFormat.TABLE,
) -> None:
    """Search on recorded learning curves, to see what a study would have found."""
    from hpsearch.cli import simulate as command

    command.simulate(study, curves, _count(workers), seed, top, format)


@app.command(rich_help_panel=_RUN)
def train(
    name: TheName,
    trial: Annotated[
        int | None, typer.Option("--trial", min=0, max=_MOST, help="Its number; the best without it.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder of models: NAME/v1 goes into it.")] = Path("models"),
    data: Annotated[TrainOn, typer.Option("--data", help="What to learn from.")] = TrainOn.TRAIN,
    export: Annotated[ExportTo | None, typer.Option("--export", help="Write the model in this format too.")] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Train the chosen configuration for good, and keep the model."""
    from hpsearch.cli import train as command

    command.train(name, trial, out, data, export, storage)


# --------------------------------------------------------------------------------------------------------- look


@app.command(rich_help_panel=_READ)
def ls(storage: Storage = DEFAULT_STORAGE, format: FormatOption = Format.TABLE) -> None:
    """List the studies."""
    from hpsearch.cli import ls as command

    command.ls(storage, format)


@app.command(rich_help_panel=_READ)
def status(name: Name = None, storage: Storage = DEFAULT_STORAGE, format: FormatOption = Format.TABLE) -> None:
    """Tell where a study stands."""
    from hpsearch.cli import status as command

    command.status(name, storage, format)


@app.command(rich_help_panel=_READ)
def best(
    name: Name = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, max=_MOST, help="How many; one, or the whole Pareto front.")
    ] = None,
    where: Where = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show the best configurations; as YAML, for `python -m trials` to train."""
    from hpsearch.cli import best as command

    command.best(name, top, where, format, storage)


@app.command(rich_help_panel=_READ)
def trials(
    name: Name = None,
    where: Where = None,
    sort: Annotated[str | None, typer.Option("--sort", help='Such as: "value desc, learning_rate".')] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, max=_MOST, help="At most so many.")] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, max=_MOST, help="The so many with the best values.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show a study's trials, chosen and ordered at will."""
    from hpsearch.cli import trials as command

    command.trials(name, where, sort, limit, top, format, storage)


@app.command(rich_help_panel=_READ)
def show(
    trial: Annotated[list[str], typer.Argument(metavar="[NAME] NUMBER", help="The study, and the trial's number.")],
    storage: Storage = DEFAULT_STORAGE,
    format: TreeFormatOption = TreeFormat.TABLE,
) -> None:
    """Show one trial's whole story."""
    from hpsearch.cli import show as command

    command.show_trial(trial, format, storage)


@app.command(rich_help_panel=_READ)
def export(
    to: Annotated[Path, typer.Option("--to", help="A .csv or .parquet file.")],
    name: Name = None,
    what: Annotated[What, typer.Option("--what", help="A row for each.")] = What.TRIALS,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Write a study to a CSV or Parquet file."""
    from hpsearch.cli import export as command

    command.export(name, to, what, storage, force=force)


@app.command(rich_help_panel=_READ)
def dashboard(
    name: Name = None,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; others than this machine need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Its port; 0 takes a free one.")] = 8080,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Serve Optuna's dashboard, to this machine or, with a token, to others."""
    from hpsearch.cli import dashboard as command

    command.dashboard(name, host, port, storage)


# --------------------------------------------------------------------------------------------------- look after


@app.command(rich_help_panel=_CHANGE)
def stop(name: TheName, storage: Storage = DEFAULT_STORAGE) -> None:
    """Ask a study's driver to save everything and end."""
    from hpsearch.cli import control

    control.stop(name, storage)


@app.command(rich_help_panel=_CHANGE)
def rm(
    name: TheName,
    storage: Storage = DEFAULT_STORAGE,
    yes: Annotated[bool, typer.Option("--yes", help="Really remove it.")] = False,
) -> None:
    """Remove a study from the database."""
    from hpsearch.cli import control

    control.rm(name, storage, yes=yes)


app.add_typer(db, name="db", rich_help_panel=_CHANGE)


@db.command()
def upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Bring the database to this program's schema version."""
    from hpsearch.cli import db as command

    command.upgrade(storage)


@db.command("check")
def check_database(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One study; all without it.")] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Look for anything in the database that must not be."""
    from hpsearch.cli import db as command

    command.check(name, storage)


def _count(workers: str | None) -> int | str | None:
    """How many workers, or ``auto``.

    Raises:
        UserError: It is neither.
    """
    if workers is None or workers == "auto":
        return workers
    if workers.isdecimal() and len(workers) < 10 and 0 < int(workers) <= MOST_WORKERS:
        return int(workers)
    raise UserError(f"--workers {workers[:40]}: must be a whole number from 1 to {MOST_WORKERS}, or auto")
