"""Studies for agents, by the Model Context Protocol.

`server`  the tools
`reading` the readings that they answer with
"""
