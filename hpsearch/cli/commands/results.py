"""The commands that tell what studies found.

Each imports what it needs when it is called, so that `hpsearch --help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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


@app.command(rich_help_panel=RESULTS)
def ls(storage: Storage = DEFAULT_STORAGE, format: FormatOption = Format.TABLE) -> None:
    """List the studies."""
    from hpsearch.cli.results.listing import print_studies

    print_studies(storage, format)


@app.command(rich_help_panel=RESULTS)
def status(
    name: OptionalStudyName = None,
    storage: Storage = DEFAULT_STORAGE,
    format: TreeFormatOption = TreeFormat.TABLE,
    watch: Watch = False,
) -> None:
    """Show the progress of a study: trials, budget, running work and failures."""
    from hpsearch.cli.results.status import print_status, watch_status

    (watch_status if watch else print_status)(name, storage, format)


@command(app, rich_help_panel=RESULTS)
def best(
    wanted: Best,
    name: OptionalStudyName = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show the configurations that are expected to be best when they are trained in full.

    As YAML, they can be trained with `python -m trials`.
    """
    from hpsearch.cli.results.best import print_best

    print_best(name, wanted, format, storage)


@command(app, rich_help_panel=RESULTS)
def trials(
    selection: Selection,
    name: OptionalStudyName = None,
    storage: Storage = DEFAULT_STORAGE,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show the trials of a study, filtered and sorted."""
    from hpsearch.cli.results.listing import print_trials

    print_trials(name, selection, format, storage)


@app.command(rich_help_panel=RESULTS)
def show(
    trials: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME] NUMBER",
            help="The study, and the number of a trial. Several numbers are compared.",
        ),
    ],
    log: Annotated[
        bool,
        typer.Option("--log", help="Show what it has printed, and how each of its attempts ended."),
    ] = False,
    attempt: Annotated[
        int | None,
        typer.Option(
            "--attempt", min=1, max=LARGEST_COUNT, help="With --log, the only attempt to show."
        ),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    format: TreeFormatOption = TreeFormat.TABLE,
    watch: Annotated[
        bool, typer.Option("--watch", help="With --log, go on until the trial has ended.")
    ] = False,
) -> None:
    """Show everything that is recorded about one trial, or its log, or compare several."""
    from hpsearch.cli.results.listing import name_and_numbers, print_comparison, print_trial
    from hpsearch.cli.results.logs import print_logs

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


@command(app, rich_help_panel=RESULTS)
def export(wanted: StudyExport) -> None:
    """Write a study to a file, to an experiment tracker, or into a storage of Optuna's."""
    from hpsearch.cli.results.export import export_study

    export_study(wanted)


@app.command(rich_help_panel=RESULTS)
def report(
    name: OptionalStudyName = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The .html or .md file to write. Default: Markdown to stdout."
        ),
    ] = None,
    force: Force = False,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Write what happened in a study as a page to send to others."""
    from hpsearch.cli.results.export import report_study

    report_study(name, out, storage, force=force)


@app.command(rich_help_panel=RESULTS)
def dashboard(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The study whose page the link opens. Without it, the link opens the list.",
        ),
    ] = None,
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
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="Its pages may stop studies and trials, add trials and raise budgets. "
            "A token is needed.",
        ),
    ] = False,
) -> None:
    """Serve the studies of a database as pages to this machine or, with a token, to others."""
    from hpsearch.cli.serving import serve_dashboard

    serve_dashboard(name, host, port, storage, allow_changes=allow_changes)


@app.command(rich_help_panel=RESULTS)
def mcp(
    storage: Storage = DEFAULT_STORAGE,
    allow_changes: Annotated[
        bool,
        typer.Option("--allow-changes", help="Agents may propose configurations and stop trials."),
    ] = False,
) -> None:
    """Serve studies to an agent by the Model Context Protocol, over stdin and stdout."""
    from hpsearch.cli.serving import serve_agents

    serve_agents(storage, allow_changes=allow_changes)
