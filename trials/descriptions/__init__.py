"""Descriptions of the kinds of tasks: plain data, which imports nothing heavy.

- `builtin`: the built-in kinds by name, training functions, and the description of any kind
- `description`: a description's fields, settings and metrics
- `models`: the model that a `task` part names, read from its name and its folder alone
- `command`, `command_line`: programs; `programs`: those that are written for a library
- `report_pattern`: patterns that find reports in the output of any program
- `cells`: cells of tables and texts of programs, as values
- `yaml_source`: YAML as plain values, with the line of each key
- `images`, `tabular`, `text`: the built-in kinds, with their settings
"""
