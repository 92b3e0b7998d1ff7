"""Facts about a kind of task without building it: plain data, which imports nothing heavy.

- `builtin`: the built-in kinds by name, and the description of any kind
- `description`: what a description is: fields, settings, metrics; that of no task at all
- `models`: the model that a `task` part names, read from its name and its folder alone
- `command`, `command_line`: programs; `function`: training functions
- `report_pattern`: patterns that find reports in what any program prints
- `images`, `tabular`, `text`: the built-in kinds, with their settings
"""
