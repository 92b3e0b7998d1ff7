"""`hpsearch mcp`: studies for agents."""

from typing import Annotated

from typer import Option

from hpsearch.cli.options import Storage
from hpsearch.errors import UserError
from hpsearch.store.connecting.hints import DEFAULT_STORAGE


def mcp(
    storage: Storage = DEFAULT_STORAGE,
    allow_changes: Annotated[
        bool, Option("--allow-changes", help="Agents may propose configurations and stop trials.")
    ] = False,
) -> None:
    """Serve studies to an agent by the Model Context Protocol, over stdin and stdout."""
    from hpsearch.store.store import Store

    try:
        from hpsearch.plugins.mcp.server import server_of
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        hint = "install it, in the folder of hpsearch's sources: pip install '.[mcp]'"
        raise UserError("the Model Context Protocol's package is not installed", hint) from None
    Store.open(storage, create=False).close()
    server_of(storage, allow_changes=allow_changes).run("stdio")  # only its messages go to stdout
