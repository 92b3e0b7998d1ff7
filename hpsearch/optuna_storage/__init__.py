"""Studies as Optuna sees them.

view: one history in memory as a storage for samplers and pruners; no database, no clock.
storage: the database as a storage, for Optuna's tools.
exporting: a copy of a study in a stock Optuna storage.
frozen: records as Optuna's trials, and back.
"""
