"""One history in memory as an Optuna storage (`view`), for samplers and pruners."""
