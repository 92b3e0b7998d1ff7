"""What people look at, without knowing of commands: tables, plans and live progress.

* `tables`: studies and trials; `status`: the status of a study and the history of a trial.
* `plan`: what a study would do; `footprint`: what its checkpoints will take.
* `live`: a running study; `gain`: what a study gained, in a sentence.
* `trust`: how far its rungs can be trusted.
* `numbers`, `terminal`: numbers and texts as they are printed.
"""
