"""MLflow: a run for a study, and nested in it one for each trial. `write` sends it."""
