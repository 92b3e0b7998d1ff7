"""Commands that check, run, change and remove studies, and train their best configurations.

* `check`: before a study; `run`: run and resume.
* `control`: stop, rm, and requests to a study while it runs.
* `import_runs`: past runs of other programs.
* `train`: the final model.
"""
