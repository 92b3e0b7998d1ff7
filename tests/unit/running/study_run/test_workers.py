"""The configuration of workers, from a study file."""

from hpsearch.running.study_run.workers import worker_config
from hpsearch.study_file.reading import parse


def test_all_trials_are_scored_at_the_largest_length_that_is_searched(tmp_path):
    study = """
study: translations
task: {kind: sequence_to_sequence, train: pairs.csv, validation: 0.2, model: scratch}
settings: {max_length: 32}
space: {max_target_length: {type: categorical, choices: [16, 64, 32]}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 4}}
"""
    config = worker_config(parse(study, base=tmp_path, name="study.yaml"), tmp_path)
    assert config.settings["scored_target_length"] == 64
    stated = study.replace("max_length: 32", "max_length: 32, scored_target_length: 20")
    config = worker_config(parse(stated, base=tmp_path, name="study.yaml"), tmp_path)
    assert config.settings["scored_target_length"] == 20
