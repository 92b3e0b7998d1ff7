"""Code that is written for other libraries, as tasks of trials.

- `loading`: builds a task, adapted where its study file names a library
- `optuna_objective`: objectives of Optuna; `optuna_trial`: the trial that they are called with;
  `suggestions`: the values that they are given
- `ray_tune`: trainables of Ray Tune
"""
