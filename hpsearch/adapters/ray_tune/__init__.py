"""Trainables of Ray Tune, functions and classes, as training functions. Needs no Ray.

- `adapting`: turns a trainable into a training function
- `session`: the trial that runs, as `tune.report` and `tune.get_checkpoint` see it, and checkpoints
- `trainable`: the base of class trainables, and how one is driven
- `working_directory`: the folder that a trial runs in
- `wrapped`: trainables with parameters and with resources
- `configs`: a trial's parameters as the nested config of a trainable
"""

from hpsearch.adapters.ray_tune.adapting import adapt

__all__ = ["adapt"]
