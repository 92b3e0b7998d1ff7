"""`hpsearch mcp`: studies for agents."""

from pathlib import Path
from typing import Annotated

from typer import Option

from hpsearch.cli.options import Storage
from hpsearch.cli.output import show
from hpsearch.errors import UserError
from hpsearch.store.connecting.hints import DEFAULT_STORAGE


def mcp(
    storage: Storage = DEFAULT_STORAGE,
    allow_changes: Annotated[
        bool, Option("--allow-changes", help="Agents may propose configurations and stop trials.")
    ] = False,
    grant: Annotated[
        str | None,
        Option(
            metavar="LIMITS",
            help="Agents may run studies of their own, of this much in all: gpu_hours=4, or "
            "cost=20,price=2.5 with the price of a GPU hour.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        Option(help="With --grant, agents may also start studies of the programs in this folder."),
    ] = None,
    skill: Annotated[bool, Option("--skill", help="Print a SKILL.md for agents instead.")] = False,
) -> None:
    """Serve studies to an agent by the Model Context Protocol, over stdin and stdout."""
    if skill:
        show((Path(__file__).parent / "SKILL.md").read_text(encoding="utf-8").rstrip())
        return
    from hpsearch.store.store import Store

    try:
        from hpsearch.plugins.mcp.campaign import Campaign, granted
        from hpsearch.plugins.mcp.server import server_of
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        hint = "install it, in the folder of hpsearch's sources: pip install '.[mcp]'"
        raise UserError("the Model Context Protocol's package is not installed", hint) from None
    campaign = None if grant is None else Campaign(storage, granted(grant), folder)
    if folder is not None and (campaign is None or not folder.is_dir()):
        raise UserError(f"--folder {folder} is no folder, or without --grant")
    Store.open(storage, create=campaign is not None).close()
    server = server_of(storage, allow_changes=allow_changes, campaign=campaign)
    server.run("stdio")  # only its messages go to stdout
