"""The command line: parse arguments, call the rooms below, print.

* `main`: the program, its commands and its exit codes; `entry`: signals.
* `options`: options that commands share.
* `output`: results to stdout, messages to stderr; `streams`: what both do when they cannot write.
* `opening`: the database and the study that a command is about.
* `commands`: the options of each; `init`, `studies`, `results`, `serving`,
  `agents`, `db`, `simulate`: the rest of each command.
"""
