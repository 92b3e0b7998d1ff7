"""Programs that studies are exchanged with.

`wandb`, `ray_tune`, `optuna`, `mlflow`, `tensorboard` and `tables` have what each program needs:
past runs of it, a study for it, and a study file from what it searches by. They share:

- `past_runs`: past runs as every reader leaves them, the columns that they are read from, and the
  study that they become
- `draft`: a study file in the making
- `sources`: the program that a source belongs to
"""
