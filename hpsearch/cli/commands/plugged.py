"""The commands that plugins offer. One that cannot be imported is told of, and left out."""

from hpsearch.cli.commands.app import app, command
from hpsearch.cli.output import note
from hpsearch.domain.plugins.door import named, offers_of
from hpsearch.domain.plugins.offers import CommandPlugin

for _plugin in offers_of(CommandPlugin).values():
    try:
        _function = named(_plugin.function)
    except Exception as _error:  # noqa: BLE001 - it is somebody else's code
        note(f"command {_plugin.name} is left out: {type(_error).__name__}: {_error}")
    else:
        command(
            app,
            _plugin.panel,
            name=_plugin.name,
            epilog=_plugin.epilog,
            context_settings=dict(_plugin.settings or {}),
        )(_function)
