"""The program that the commands belong to, and the panels of its help."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

import hpsearch

app = typer.Typer(
    help=hpsearch.__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(help="Upgrade, check, back up and tidy the database.", no_args_is_help=True)

SEARCH, RESULTS, MAINTENANCE = "Search", "Results", "Maintenance"


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"hpsearch {version('hpsearch')}")
        raise typer.Exit


@app.callback()
def _program(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass
