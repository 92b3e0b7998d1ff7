"""Past runs of other programs as studies of their own.

- `runs`: what every reader makes of its source, and the error that lists what does not fit
- `cells`: numbers, words, states and times as other programs write them
- `columns`: which column of a table is what, from options or a mapping file
- `tables`: rows of CSV and Parquet files, each with its place
- `table_runs`: past runs from the rows of a table
- `tune_folder`, `wandb_runs`, `optuna_study`: past runs from what Ray Tune, W&B and Optuna keep
- `space`: the space that past runs searched: stated, or inferred
- `writer`: past runs into the database, all or nothing
"""
