"""Optuna: its objectives as trials, its scripts as study files, its storages as places of studies.

- `objective`: objectives, and scripts that search by Optuna up to their search, as training code
- `objective_trial`: the trial that an objective is called with, and its study
- `script`: a script that searches by Optuna as a study file; `length`: how long its trials train
- `places`: which sources are Optuna's
- `storages`: past runs from a storage of Optuna's, and a copy of a study into one
"""

from hpsearch.domain.plugins.offers import LibraryPlugin, SourcePlugin

offers = [
    LibraryPlugin(
        "optuna",
        adapt="hpsearch.plugins.optuna.objective:adapt",
        problems="hpsearch.plugins.optuna.objective:problems_with",
        again="call the objective with optuna.trial.FixedTrial(its parameters)",
        asks=True,
        keeps=False,
    ),
    SourcePlugin(
        "optuna",
        what="the URL of an Optuna storage",
        takes="hpsearch.plugins.optuna.places:is_storage",
        runs="hpsearch.plugins.optuna.storages:past_runs",
        copy="hpsearch.plugins.optuna.storages:copy_study",
    ),
    SourcePlugin(
        "optuna_script",
        what="a script of Optuna's with its arguments",
        takes="hpsearch.plugins.optuna.places:is_script",
        draft="hpsearch.plugins.optuna.script:draft",
    ),
]
