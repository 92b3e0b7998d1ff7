"""The program that the commands belong to, the panels of its help, and commands with groups of
options.

A parameter whose type is a dataclass of options stands for all of them. They are declared once, and
handed on as one value.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib.metadata import version
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

import typer
from typer import Option

import hpsearch
from hpsearch.domain.plugins.door import named, packages

app = typer.Typer(
    help=hpsearch.__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(help="Upgrade and check the database.", no_args_is_help=True)

SEARCH, RESULTS, MAINTENANCE = "Search", "Results", "Maintenance"
VERSION = "Print the version, and the plugins that other packages brought."


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo("\n".join([f"hpsearch {version('hpsearch')}", *packages()]))
        raise typer.Exit


@app.callback()
def _program(
    _: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help=VERSION)
    ] = False,
) -> None:
    pass


Command = Callable[..., None]
CALLED: dict[Command, str] = {}
"""What commands call that are only declared, as ``module:function`` of this room."""


def command(
    app: typer.Typer, panel: str | None = None, calls: str | None = None, **more: Any
) -> Callable[[Command], Command]:
    """Like ``app.command``, for functions with groups of options. The command calls the function
    itself, or what `calls` names (`CALLED`) with the same parameters, which is only then imported,
    so that `hpsearch --help` answers at once."""

    def register(function: Command) -> Command:
        if calls is not None:
            CALLED[function] = calls
        app.command(rich_help_panel=panel, **more)(_with_single_options(function))
        return function

    return register


def called_by(function: Command) -> Command:
    """What a command calls: the function that declares it, or another one, which is imported."""
    called = CALLED.get(function)
    return function if called is None else named(f"hpsearch.cli.{called}")


def _with_single_options(function: Command) -> Command:
    """A command whose options are those of the groups, one by one."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @functools.wraps(function)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        called_by(function)(**given)

    parameters = list(_parameters(function, hints))
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # typer reads it
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _parameters(function: Command, hints: dict[str, Any]) -> Iterator[Parameter]:
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if not is_dataclass(hint):
            yield parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hint)
            continue
        of_fields = get_type_hints(hint, include_extras=True)
        for field in fields(hint):
            default = Parameter.empty if field.default is MISSING else field.default
            annotation, kind = of_fields[field.name], Parameter.KEYWORD_ONLY
            yield Parameter(field.name, kind, default=default, annotation=annotation)
