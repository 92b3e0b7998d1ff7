"""Code that is written for other libraries, as tasks of trials.

- `loading`: builds a task, adapted where its study file names a library
- `optuna_objective`: objectives of Optuna, and scripts that search by Optuna up to their search;
  `optuna_trial`: the trial that they are called with, and its study
- `ray_tune`: trainables of Ray Tune
"""
