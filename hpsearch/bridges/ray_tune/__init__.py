"""Ray Tune's interface to studies.

- `tuner`: `Tuner`, which runs a study; `results`: what `Tuner.fit` returns
- `plan`: the study file of a Tuner; `space`: its parameters; `locating`: its trainable
"""
