"""Commands that make, check, run, stop and remove studies, and train their best configurations.

* `init`, `schema`, `check`: before a study; `starters`: the files that `init` writes.
* `run`: run and resume; `enqueue`: configurations given to them; `control`: stop and rm.
* `train`: the final model.
"""
