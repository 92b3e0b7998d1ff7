"""Optuna: past runs and study files from its storages, and a copy of a study in one.

`storages` opens stock storages of Optuna's, and `storage` is the database as one.
"""
