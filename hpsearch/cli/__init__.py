"""The command line: parse arguments, call the rooms below, print.

* `main`: the program, its commands and its exit codes; `entry` and `interrupts`: signals.
* `options`: options that commands share.
* `output`: results to stdout, messages to stderr; `streams`: what both do when they cannot write.
* `opening`: the database and the study that a command is about; `places`: files that it writes.
* `commands`: the options of each; `study_files`, `studies`, `results`, `dashboard`,
  `agents`, `db`, `simulate`: the rest of each command.
"""
