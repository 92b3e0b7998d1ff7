"""The commands that tell what studies found."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hpsearch.cli.commands.app import RESULTS, app, command
from hpsearch.cli.options import (
    LARGEST_COUNT,
    Best,
    Force,
    FormatOption,
    OptionalStudyName,
    Selection,
    Storage,
    StudyExport,
    TreeFormatOption,
    Watch,
)
from hpsearch.cli.output import Format, TreeFormat
from hpsearch.errors import UserError
from hpsearch.store.connecting.hints import DEFAULT_STORAGE


@command(app, RESULTS, "results.listing:print_studies")
def ls(storage: Storage = DEFAULT_STORAGE, format: FormatOption = Format.TABLE) -> None:
    """List the studies."""


@command(app, RESULTS, "results.listing:print_status")
def status(
    name: OptionalStudyName = None,
    storage: Storage = DEFAULT_STORAGE,
    format: TreeFormatOption = TreeFormat.TABLE,
    watch: Watch = False,
    beliefs: Annotated[
        bool, Option("--beliefs", help="Print what the search believes, as JSON or YAML.")
    ] = False,
) -> None:
    """Show the progress of a study: trials, budget, running work and failures."""


@command(app, RESULTS, "results.best:print_best")
def best(
    wanted: Best,
    name: OptionalStudyName = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show the configurations that are expected to be best when they are trained in full.

    As YAML, they can be trained with `python -m trials`.
    """


@command(app, RESULTS, "results.listing:print_trials")
def trials(
    selection: Selection,
    name: OptionalStudyName = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show the trials of a study, filtered and sorted."""


@command(app, RESULTS)
def show(
    trials: Annotated[
        list[str],
        Argument(
            metavar="[NAME] NUMBER",
            help="The study, and the number of a trial. Several numbers are compared.",
        ),
    ],
    log: Annotated[
        bool, Option("--log", help="Show what it has printed, and how each of its attempts ended.")
    ] = False,
    attempt: Annotated[
        int | None,
        Option("--attempt", min=1, max=LARGEST_COUNT, help="With --log, the only attempt to show."),
    ] = None,
    revisions: Annotated[
        bool, Option("--revisions", help="Show the changes of code that NAME has tested.")
    ] = False,
    patch: Annotated[
        int | None, Option("--patch", min=1, help="Print the patch of one of these, for git apply.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    format: TreeFormatOption = TreeFormat.TABLE,
    watch: Annotated[
        bool, Option("--watch", help="With --log, go on until the trial has ended.")
    ] = False,
) -> None:
    """Show everything that is recorded about one trial, or its log, or compare several."""
    from hpsearch.cli.results import listing
    from hpsearch.cli.results.listing import name_and_numbers, print_comparison, print_trial
    from hpsearch.cli.results.logs import print_logs

    if revisions or patch is not None:
        listing.print_revisions(trials[0], patch, format, storage)
        return
    name, numbers = name_and_numbers(trials)
    if log or attempt is not None:
        if not log or format is not TreeFormat.TABLE:
            raise UserError("a log is shown by --log, as it is", "add --log, or remove --format")
        if len(numbers) > 1:
            raise UserError("--log shows one trial", "give one number")
        print_logs(name, numbers[0], attempt, storage, follow=watch)
    elif watch:
        raise UserError("--watch follows a log", "add --log, or remove --watch")
    elif len(numbers) > 1:
        print_comparison(name, numbers, format, storage)
    else:
        print_trial(name, numbers[0], format, storage)


@command(app, RESULTS, "results.export:export_study")
def export(wanted: StudyExport) -> None:
    """Write a study to a file, to an experiment tracker, or into a storage of Optuna's."""


@command(app, RESULTS, "results.export:report_study")
def report(
    name: OptionalStudyName = None,
    out: Annotated[
        Path | None,
        Option("--out", "-o", help="The .html or .md file to write. Default: Markdown to stdout."),
    ] = None,
    force: Force = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Write what happened in a study as a page to send to others."""


@command(app, RESULTS, "serving:serve_dashboard")
def dashboard(
    name: Annotated[
        str | None,
        Argument(
            metavar="NAME",
            help="The study whose page the link opens. Without it, the link opens the list.",
        ),
    ] = None,
    host: Annotated[
        str,
        Option(
            "--host",
            help="The address to listen on. If other machines can reach it, a token is needed.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, Option("--port", min=0, max=65535, help="The port to listen on; 0 takes a free one.")
    ] = 8080,
    storage: Storage = DEFAULT_STORAGE,
    allow_changes: Annotated[
        bool,
        Option(
            "--allow-changes",
            help="Its pages may stop studies and trials, add trials and raise budgets. "
            "A token is needed.",
        ),
    ] = False,
) -> None:
    """Serve the studies of a database as pages to this machine or, with a token, to others."""
