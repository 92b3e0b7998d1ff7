"""The commands that plugins offer. One that cannot be used is told of, and left out."""

import typer

from hpsearch.cli.commands.app import app, command
from hpsearch.domain.plugins.door import named, offers_of, tell_of
from hpsearch.domain.plugins.offers import CommandPlugin


def _add(plugin: CommandPlugin, app: typer.Typer) -> None:
    command(
        app,
        plugin.panel,
        name=plugin.name,
        epilog=plugin.epilog,
        context_settings=dict(plugin.settings or {}),
    )(named(plugin.function))


_ours = set(typer.main.get_group(app).commands)
for _plugin in offers_of(CommandPlugin).values():
    try:
        assert _plugin.name not in _ours, "there is a command with this name"
        alone = typer.Typer()
        _add(_plugin, alone)
        typer.main.get_command(alone)  # raises for parameters that Typer cannot read
    except Exception as _error:  # noqa: BLE001 - it is somebody else's code
        tell_of("command", _plugin.name, _error)
    else:
        _add(_plugin, app)
