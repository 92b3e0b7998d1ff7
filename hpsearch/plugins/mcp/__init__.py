"""Agents, which read and change studies by the Model Context Protocol.

- `command`: `hpsearch mcp`
- `server`: the tools that agents are given;  `campaign`, `folder`: those for studies of their own
"""

from hpsearch.domain.plugins.offers import CommandPlugin

offers = [CommandPlugin("mcp", "Results", "hpsearch.plugins.mcp.command:mcp")]
