"""The command line: parse arguments, call the rooms below, print.

* `main`: the program, its commands and its exit codes; `entry` and `interrupts`: signals.
* `options`: options that commands share.
* `output`: results to stdout, messages to stderr; `streams`: what both do when they cannot write.
* `opening`: the database and the study that a command is about.
* `commands`: the options of each; `init`, `studies`, `results`, `serving`, `db`: the rest of each.

Every command may raise a `HpsearchError`, which says what is wrong and what to do: `main` prints it
and makes an exit code of it. Its options are explained by their help texts.
"""
