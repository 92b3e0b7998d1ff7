"""The study file as a JSON Schema, for editors.

`document`  the whole schema; read this first
`search`    samplers and pruners;  `tasks`  what depends on the task;  `terms`  what all parts share
"""
