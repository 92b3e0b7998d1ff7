"""The commands that change a study while it runs, and keep the database in order.

Each imports what it needs when it is called, so that `hpsearch --help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpsearch.cli.commands.app import MAINTENANCE, app, command, db
from hpsearch.cli.options import Proposal, Storage, StudyName
from hpsearch.store.connecting.hints import DEFAULT_STORAGE


@app.command(rich_help_panel=MAINTENANCE)
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
    from hpsearch.cli.studies.control import stop_study, stop_trial

    if trial is None:
        stop_study(name, storage)
    else:
        stop_trial(name, trial, storage)


@command(app, rich_help_panel=MAINTENANCE)
def enqueue(name: StudyName, proposal: Proposal, storage: Storage = DEFAULT_STORAGE) -> None:
    """Let a running study try a configuration next; what is not given is drawn."""
    from hpsearch.cli.studies.control import propose

    propose(name, proposal, storage)


@app.command(rich_help_panel=MAINTENANCE)
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


app.add_typer(db, name="db", rich_help_panel=MAINTENANCE)


@db.command("upgrade")
def db_upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Bring the database to the schema version of this program."""
    from hpsearch.cli.db import upgrade_database

    upgrade_database(storage)


@db.command("check")
def db_check(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The study to check. Default: all studies.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Check the database and its checkpoints for damage."""
    from hpsearch.cli.db import check_database

    check_database(name, storage)


@db.command("backup")
def db_backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="The new file for the copy.")],
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Copy the database while studies run, and check the copy."""
    from hpsearch.cli.db import backup_database

    backup_database(to, storage)


@db.command("tidy")
def db_tidy(
    older_than: Annotated[
        str | None,
        typer.Option(
            help="Also thin the reports of studies that finished so long ago, such as 90d."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Give unused space back, and thin the reports of old studies."""
    from hpsearch.cli.db import tidy_database

    tidy_database(storage, older_than, dry_run=dry_run)
