"""The commands, a module for each panel of the help.

* `app`: the program, and commands with groups of options.
* `search`, `results`, `maintenance`: its commands, in the order of the help.
* `plugged`: those that plugins offer.
"""
