"""Agents, which read and change studies by the Model Context Protocol.

- `command`: `hpsearch mcp`
- `server`: the tools that agents are given;  `campaign`: those for studies of their own;  `folder`:
  those of programs that a person grants
"""

from hpsearch.domain.plugins.offers import CommandPlugin

offers = [CommandPlugin("mcp", "Results", "hpsearch.plugins.mcp.command:mcp")]
