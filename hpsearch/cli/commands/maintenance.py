"""The commands that change a study while it runs, and keep the database in order."""

from typing import Annotated

from typer import Argument, Option

from hpsearch.cli.commands.app import MAINTENANCE, app, command, db
from hpsearch.cli.options import Proposal, Storage, StudyName
from hpsearch.store.connecting.hints import DEFAULT_STORAGE


@command(app, MAINTENANCE, "studies.control:stop")
def stop(
    name: StudyName,
    trial: Annotated[
        int | None,
        Argument(
            metavar="NUMBER", min=0, help="One trial that is to end. Default: the whole study."
        ),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Ask the driver of a study to save everything and end; or end one of its trials."""


@command(app, MAINTENANCE, "studies.control:propose")
def enqueue(name: StudyName, proposal: Proposal, storage: Storage = DEFAULT_STORAGE) -> None:
    """Let a running study try a configuration next; what is not given is drawn."""


@command(app, MAINTENANCE, "studies.control:remove_study")
def rm(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    yes: Annotated[bool, Option("--yes", help="Do not ask for confirmation.")] = False,
    keep_checkpoints: Annotated[
        bool, Option("--keep-checkpoints", help="Do not remove the study's checkpoints.")
    ] = False,
) -> None:
    """Remove a study from the database, and its checkpoints."""


app.add_typer(db, name="db", rich_help_panel=MAINTENANCE)


@command(db, calls="db:upgrade_database", name="upgrade")
def db_upgrade(storage: Storage = DEFAULT_STORAGE) -> None:
    """Bring the database to the schema version of this program."""


@command(db, calls="db:check_database", name="check")
def db_check(
    name: Annotated[
        str | None, Argument(metavar="NAME", help="The study to check. Default: all studies.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Check the database and its checkpoints for damage."""
