"""The commands, a module for each panel of the help.

* `app`: the program; `search`, `results`, `maintenance`: its commands, in the order of the help.
* `groups`: commands with groups of options.
"""
