"""Trainables of Ray Tune, functions and classes, as training functions. Needs no Ray.

- `adapting`: turns a trainable, with its parameters and resources, into a training function
- `session`: the trial that runs, as `tune.report` sees it, its checkpoints and its folder
- `trainable`: the base of class trainables, and how one is driven
"""

from hpsearch.adapters.ray_tune.adapting import adapt

__all__ = ["adapt"]
