"""Optuna: what is exchanged with its storages.

- `read`: past runs; `translate`: study files; `write`: a copy of a study
"""
