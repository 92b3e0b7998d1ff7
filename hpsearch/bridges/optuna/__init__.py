"""Optuna: what is exchanged with its storages and its scripts.

- `read`: past runs; `write`: a copy of a study
- `script`: study files from scripts
"""
