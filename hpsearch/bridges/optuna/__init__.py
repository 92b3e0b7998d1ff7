"""Optuna: `storages` has past runs and copies of studies, `script` study files from scripts."""
