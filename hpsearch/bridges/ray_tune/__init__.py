"""Ray Tune: past runs from a folder of results, and its interface to studies.

- `read`: past runs
- `tuner`: `Tuner`, which runs a study; `results`: what `Tuner.fit` returns
- `plan`: the study file of a Tuner; `space`: its parameters; `locating`: its trainable
"""
