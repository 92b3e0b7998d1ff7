"""The command line: parse arguments, call the rooms below, print.

* `main`: the program, its commands and its exit codes; `options`: options that commands share.
* `output`: results to stdout, messages to stderr; `streams`: what both do when they cannot write.
* `opening`: the database and the study that a command is about.
* `studies`, `results`, `dashboard`, `db`, `simulate`: the commands.
"""
