"""One history in memory as an Optuna storage, for samplers and pruners; no database, no clock.

- `view`: the storage
- `frozen`: records as Optuna's trials
"""
