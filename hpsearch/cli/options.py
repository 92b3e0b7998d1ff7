"""The options and arguments that several commands share, with their help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpsearch.cli.output import Format, TreeFormat
from hpsearch.errors import UserError

DEFAULT_STORAGE = "sqlite:///hpsearch.db"

LARGEST_COUNT = 2**31 - 1
"""The largest trial number, or number of rows, that both databases accept."""

MOST_WORKERS = 100_000

Storage = Annotated[
    str,
    typer.Option(
        "--storage",
        envvar="HPSEARCH_STORAGE",
        help="The database: sqlite:///FILE or postgresql://…",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        envvar="RAY_ADDRESS",
        help="The address of the Ray cluster. Default: this machine.",
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(
        "--workers", metavar="N|auto", help="The number of trials that run at the same time."
    ),
]
Checkpoints = Annotated[
    str | None, typer.Option("--checkpoints", help="The folder or URL for checkpoints.")
]
Enqueue = Annotated[
    list[str] | None,
    typer.Option(
        "--enqueue",
        help='A configuration to try first, such as "learning_rate=1e-4, batch_size=32". '
        "Can be repeated.",
    ),
]
Notify = Annotated[
    str | None,
    typer.Option(
        "--notify",
        metavar="URL|COMMAND",
        envvar="HPSEARCH_NOTIFY",
        help="Who is sent a notice of a new best, of trouble and of the end.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show live progress.")]

MostTrials = Annotated[
    int | None,
    typer.Option("--trials", help="The new limit on trials, including those already run."),
]
MostGpuHours = Annotated[
    float | None,
    typer.Option("--gpu-hours", help="The new limit on GPU hours, including those used."),
]
MostWallClock = Annotated[
    str | None,
    typer.Option(
        "--wall-clock", help="The new limit on running time, such as 4h, including time used."
    ),
]
MostCost = Annotated[
    float | None,
    typer.Option("--cost", help="The new limit on cost, including what is already spent."),
]

StudyName = Annotated[str, typer.Argument(metavar="NAME", help="The study.")]
OptionalStudyName = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="The study. Not needed if the database has only one study."
    ),
]
StudyFile = Annotated[
    Path, typer.Argument(metavar="STUDY", help="The study file, such as study.yaml.")
]

OptionalStudyFile = Annotated[
    Path | None, typer.Argument(metavar="STUDY", help="The study file, such as study.yaml.")
]

Where = Annotated[
    str | None,
    typer.Option(
        "--where", help="Select trials, such as: \"learning_rate < 1e-4 and state = 'complete'\"."
    ),
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch", help="Show it again whenever it changes, until the study's driver ends."
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="The output format.")]
TreeFormatOption = Annotated[TreeFormat, typer.Option("--format", "-f", help="The output format.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it already exists.")]


def worker_count(workers: str | None) -> int | str | None:
    """The value of --workers as a number, ``auto``, or None if it was not given. Raises UserError
    if it is neither a number in range nor ``auto``."""
    if workers is None or workers == "auto":
        return workers
    if workers.isdecimal() and len(workers) < 10 and 0 < int(workers) <= MOST_WORKERS:
        return int(workers)
    wanted = f"must be a whole number from 1 to {MOST_WORKERS}, or auto"
    raise UserError(f"--workers {workers[:40]}: {wanted}")
