"""`hpsearch mcp`: serve one database to an agent, over stdin and stdout."""

from __future__ import annotations

from hpsearch.errors import UserError
from hpsearch.store.store import Store


def serve_agents(storage: str, *, allow_changes: bool) -> None:
    """Serve until the client closes stdin. Only messages of the protocol go to stdout.

    Raises:
        UserError: The protocol's package is not installed.
        StoreUnreachable: There is no such database.
    """
    try:
        from hpsearch.agents.server import server_of
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        hint = "install it, in the folder of hpsearch's sources: pip install '.[mcp]'"
        raise UserError("the Model Context Protocol's package is not installed", hint) from None
    Store.open(storage, create=False).close()
    server_of(storage, allow_changes=allow_changes).run("stdio")
