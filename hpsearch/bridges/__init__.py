"""Programs that studies are exchanged with, a folder for each.

`wandb`, `ray_tune`, `optuna`, `mlflow`, `tensorboard`, `trackio` and `tables` have, as far as each
goes: `read` (past runs of the program), `write` (a study for the program) and `translate` (a study
file from what the program searches by). They share:

- `past_runs`: past runs as every `read` leaves them, and the error that lists what does not fit
- `cells`: numbers, words, states and times as other programs write them
- `columns`: which column of a table is what, from options or a mapping file
- `searched_space`: the space that past runs searched: stated, or inferred
- `imported_study`: past runs into the database, all or nothing
- `draft`: a study file in the making, with remarks on what is lost
- `sources`: which program a source belongs to
"""
