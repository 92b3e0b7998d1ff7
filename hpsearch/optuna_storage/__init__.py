"""One history in memory as an Optuna storage, for samplers and pruners; no database, no clock."""
