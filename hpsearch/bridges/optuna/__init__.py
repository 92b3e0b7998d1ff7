"""Optuna: what is exchanged with its storages and its scripts.

- `read`: past runs; `translate`: study files; `write`: a copy of a study
- `script`: study files from scripts
"""
