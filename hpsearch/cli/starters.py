"""The study files that `hpsearch init` writes: one for each kind of task, with comments to edit it by.

Each is an opening, a part of its own with task, settings, space and objective, and a close. `$train` and the like stand
for what the command fills in.
"""

from __future__ import annotations

from string import Template

OPENING = """\
# A study: what is searched, for what, and with which budget. Check it with: hpsearch check
study: my-study                        # its name in the database
seed: 0                                # everything random follows from it

"""

CLOSE = """
budget:
  trials: 20
  # gpu_hours: 1.5                     # what is reached first ends the study
  # wall_clock: 2h
  per_trial: {epochs: $epochs}               # or steps, samples, seconds$unit

search:
  sampler: curve_gp                    # or tpe, random, gp, qmc and Optuna's others
  pruner: {kind: promotion, eta: 3}    # at each rung a third goes on; none trains every trial in full

resources: {workers: auto, cpu: 1, gpu: auto}   # for each worker; gpu: 0.5 puts two on a GPU
"""

TEXT_CLASSIFICATION = """\
task:
  kind: text_classification
  train: $train
  validation: 0.15                     # a fraction of the training data, or a file
  # test: test.csv                     # never seen by the search
  text: $text
  label: $label
  model: {scratch: {layers: 2, width: 128}}   # or a hub id such as distilbert-base-uncased, or a folder

settings:                              # fixed for every trial
  schedule: cosine

space:                                 # what is searched
  learning_rate: {type: float, low: 1.0e-5, high: 3.0e-3, log: true}   # YAML needs the point in 1.0e-5
  batch_size: {type: categorical, choices: [16, 32, 64]}
  warmup: {type: float, low: 0.0, high: 0.3}
  # momentum: {type: float, low: 0.5, high: 0.99, when: {optimizer: sgd}}   # only with that optimizer

objective: {metric: accuracy, direction: maximize}   # or macro_f1, mcc, loss
"""

TOKEN_CLASSIFICATION = """\
task:
  kind: token_classification
  train: $train                  # a word and its tag on each line; or lists in a Parquet or JSONL file
  validation: 0.15                     # a fraction of the training data, or a file
  # test: test.conll                   # never seen by the search
  # tokens: tokens                     # in a Parquet or JSONL file: the column with the lists of words
  # tags: tags                         # and the one with the lists of tags
  model: {scratch: {layers: 2, width: 128}}   # or a hub id such as distilbert-base-cased, or a folder

settings:                              # fixed for every trial
  schedule: cosine

space:                                 # what is searched
  learning_rate: {type: float, low: 1.0e-5, high: 3.0e-3, log: true}   # YAML needs the point in 1.0e-5
  batch_size: {type: categorical, choices: [8, 16, 32]}
  warmup: {type: float, low: 0.0, high: 0.3}

objective: {metric: f1, direction: maximize}   # of whole entities; or precision, recall, accuracy, loss
"""  # noqa: S105 - no password: tokens are words here

LANGUAGE_MODELING = """\
task:
  kind: language_modeling
  train: $train                     # a document is a paragraph; or a row of a CSV, Parquet or JSONL file
  validation: 0.1                      # a fraction of the documents, or a file
  # test: test.txt                     # never seen by the search
  # text: text                         # in a file with columns: the one with the texts
  model: {scratch: {layers: 2, width: 128}}   # or a hub id such as distilgpt2, or a folder

settings:                              # fixed for every trial
  schedule: cosine
  max_length: 128                      # tokens in a block

space:                                 # what is searched
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-2, log: true}   # YAML needs the point in 1.0e-5
  batch_size: {type: categorical, choices: [8, 16, 32]}
  weight_decay: {type: float, low: 1.0e-3, high: 0.3, log: true}

objective: {metric: perplexity, direction: minimize}   # or loss
"""

SEQUENCE_TO_SEQUENCE = """\
task:
  kind: sequence_to_sequence
  train: $train                     # a CSV, Parquet or JSONL file
  validation: 0.1                      # a fraction of the training data, or a file
  # test: test.csv                     # never seen by the search
  source: source                       # the column with the texts that are read
  target: target                       # the column with the texts to write for them
  model: {scratch: {layers: 2, width: 128}}   # or a hub id such as t5-small, or a folder

settings:                              # fixed for every trial
  schedule: cosine

space:                                 # what is searched
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-2, log: true}   # YAML needs the point in 1.0e-5
  batch_size: {type: categorical, choices: [8, 16, 32]}
  warmup: {type: float, low: 0.0, high: 0.3}

objective: {metric: loss, direction: minimize}   # or perplexity
"""

IMAGE_CLASSIFICATION = """\
task:
  kind: image_classification
  train: $train                     # a folder with a folder of images for each class, or a .npz file
  validation: 0.15                     # a fraction of the training data, or such data
  # test: test                         # never seen by the search
  # size: 64                           # the side in pixels that the images of a folder are scaled to

settings:                              # fixed for every trial
  schedule: cosine
  depth: 3                             # stages of the network

space:                                 # what is searched
  learning_rate: {type: float, low: 1.0e-4, high: 1.0e-1, log: true}   # YAML needs the point in 1.0e-4
  width: {type: categorical, choices: [16, 32, 64]}
  flip: {type: categorical, choices: [true, false]}   # mirror half of the training images
  shift: {type: int, low: 0, high: 4}

objective: {metric: accuracy, direction: maximize}   # or macro_f1, mcc, loss
"""

TABULAR = """\
task:
  kind: tabular
  train: $train
  validation: 0.15                     # a fraction of the training data, or a file
  # test: test.csv                     # never seen by the search
  target: target                       # the column to predict
  objective_kind: classification       # or regression
  # numeric: [age, income]             # columns; what is left out here is told from the data
  # categorical: [city]

settings:                              # fixed for every trial
  schedule: cosine

space:                                 # what is searched
  learning_rate: {type: float, low: 1.0e-4, high: 3.0e-2, log: true}   # YAML needs the point in 1.0e-4
  depth: {type: int, low: 1, high: 4}
  width: {type: int, low: 32, high: 512, log: true}
  dropout: {type: float, low: 0.0, high: 0.5}

objective: {metric: accuracy, direction: maximize}   # or macro_f1, mcc, loss; of a regression: rmse, mae, r2, loss
"""

FUNCTION = """\
# The function `train` of train.py beside this file:
#
#     def train(params, trial):
#         for epoch in range(1, trial.budget + 1):
#             ...
#             trial.report(epoch, {"accuracy": accuracy})
task:
  kind: train:train                    # module:function

space:                                 # what is searched; each parameter comes in `params`
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-1, log: true}   # YAML needs the point in 1.0e-5
  width: {type: int, low: 16, high: 256, log: true}
  optimizer: {type: categorical, choices: [adam, sgd]}
  momentum: {type: float, low: 0.5, high: 0.99, when: {optimizer: sgd}}

objective: {metric: accuracy, direction: maximize}   # a name that the function reports
"""

STARTERS = {
    "text_classification": TEXT_CLASSIFICATION,
    "token_classification": TOKEN_CLASSIFICATION,
    "language_modeling": LANGUAGE_MODELING,
    "sequence_to_sequence": SEQUENCE_TO_SEQUENCE,
    "image_classification": IMAGE_CLASSIFICATION,
    "tabular": TABULAR,
    "function": FUNCTION,
}
"""The part of each kind's own."""

TRAIN = {"token_classification": "train.conll", "language_modeling": "train.txt", "image_classification": "train"}
"""The training data's name where none is given; train.csv for all other kinds."""


def starter(kind: str, train: str | None, **names: str) -> str:
    """The study file to start from.

    Args:
        kind: One of `STARTERS`.
        train: The training data, as YAML; None for the usual name.
        names: Columns, as YAML.
    """
    own = kind == "function"
    filled = {"train": train or TRAIN.get(kind, "train.csv"), **names}
    budget = {"epochs": "9" if own else "3", "unit": ": the unit that the function reports in" if own else ""}
    return OPENING + Template(STARTERS[kind]).substitute(filled) + Template(CLOSE).substitute(budget)
