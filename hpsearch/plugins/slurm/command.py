"""`hpsearch submit`, which imports what it needs when it is called."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from hpsearch.cli.options import Storage, StudyFile
from hpsearch.store.connecting.hints import DEFAULT_STORAGE


def submit(
    context: typer.Context,
    study: StudyFile,
    slurm: Annotated[bool, Option("--slurm", help="To SLURM, as without it.")] = False,
    driver: Annotated[
        str, Option(metavar="OPTIONS", help="With --array, sbatch's options for the driver.")
    ] = "",
    prelude: Annotated[
        Path | None, Option(metavar="FILE", help="Lines that every node of SLURM runs first.")
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the script and the calls of sbatch, and do nothing.")
    ] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Run a study as jobs of SLURM: start it, or continue it."""
    from hpsearch.plugins.slurm.submitting import submit_to_slurm

    submit_to_slurm(study, context.args, driver, prelude, storage, dry_run)
