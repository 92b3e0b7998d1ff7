"""Studies for agents, by the Model Context Protocol.

`server`  the server, and the tools that change studies
`reading` the tools that read
"""
