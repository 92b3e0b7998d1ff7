"""`hpsearch mcp`: studies for agents, by the Model Context Protocol.

`command` starts the server, `server` says which tools there are, `reading` reads for them.
"""
