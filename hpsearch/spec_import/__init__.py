"""Study files from what other programs search by. Code is read as text, and never run.

- `draft`: a study file being made, with remarks on what cannot be carried over
- `source`: which program a file belongs to, and its draft
- `wandb_sweep`, `wandb_distributions`: a sweep of Weights & Biases
- `python_code`: values in Python code, as far as they are written there
- `optuna_code`, `optuna_space`: code of Optuna
"""
