"""A study file that is right, for tests to change, and the problems of one that is not."""

from pathlib import Path

import pytest

from hpsearch.errors import SpecError
from hpsearch.study_file.reading import parse

GOOD = """\
study: banking-intents
seed: 7
task:
  kind: text_classification
  train: data/train.csv
  validation: 0.15
  text: text
  label: category
  model: {scratch: {layers: 2, width: 64}}
settings:
  schedule: cosine
  max_grad_norm: 1.0
space:
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}
  batch_size: {type: categorical, choices: [16, 32, 64]}
  optimizer: {type: categorical, choices: [adamw, sgd]}
  momentum: {type: float, low: 0.5, high: 0.9, when: {optimizer: sgd}}
  freeze_layers: {type: int, low: 0, high: 4}
objective: {metric: accuracy, direction: maximize}
budget:
  trials: 40
  gpu_hours: 1.5
  wall_clock: 1h30m
  per_trial: {epochs: 3}
search:
  sampler: tpe
  pruner: {kind: promotion, eta: 3}
  confirm: {top: 3, seeds: 2}
resources: {workers: auto, cpu: 1, gpu: 0.5}
enqueue:
  - {learning_rate: 5.0e-4, batch_size: 32}
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse(text, base=Path())
    return caught.value.problems
