"""Ray Tune's interface to studies.

- `tuner`: `Tuner`, which runs a study, and what `Tuner.fit` returns
- `runs`: `tune.run`, its older form
- `plan`: the study file of a Tuner, with its trainable; `space`: its parameters
"""
