"""Programs that studies are exchanged with, a folder for each.

`wandb`, `ray_tune`, `optuna`, `mlflow`, `tensorboard` and `tables` have, as far as each goes:
`read` (past runs of the program), `write` (a study for the program) and `translate` (a study file
from what the program searches by). They share:

- `past_runs`: past runs as every `read` leaves them, the columns that they are read from, and the
  error that lists what does not fit
- `imported_study`: past runs as a study: the space that they searched, and their records
- `draft`: a study file in the making
- `sources`: the program that a source belongs to
"""
