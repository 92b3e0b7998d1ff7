"""Optuna: `storages` has past runs and copies of studies, `script` study files from scripts;
`length`: how many steps a script's trials report."""
