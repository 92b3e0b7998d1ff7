"""Studies as Optuna sees them.

view: one history in memory as a storage for samplers and pruners; no database, no clock.
storage: the database as a storage, for Optuna's tools.
frozen: records as Optuna's trials, and back.
"""
