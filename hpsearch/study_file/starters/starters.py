"""The study files that `hpsearch init` writes: one for each kind of task, with comments.

Each is an opening, a part for its kind with task, settings and space, and a close. The command
fills in `$train` and the like.
"""

from __future__ import annotations

from contextlib import suppress
from string import Template

import yaml

from hpsearch.errors import UserError
from trials.settings import SMALLER_IS_BETTER, nearest

OPENING = """\
# A study: what is searched, for what, and with which budget. Check it with: hpsearch check
study: $study   # its name in the database
seed: 0                                # the seed of everything random

"""

CLOSE = """
objective: {metric: $metric, direction: $direction}   # $others
$enqueue
budget:
  trials: 20
  # gpu_hours: 1.5                     # the first limit that is reached ends the study
  # wall_clock: 2h
  per_trial: {$counted: $total}               # or steps, samples, seconds$unit

search:
  sampler: curve_gp                    # or tpe, random, gp, qmc and Optuna's others
  pruner: {kind: promotion, eta: 3$first}    # a third continues at each rung; or none

resources: {workers: auto, cpu: 1, gpu: auto}   # for each worker; gpu: 0.5 puts two on a GPU
"""

ON_TEXTS = """\
task:
  kind: $kind
  train: $train
  validation: $validation                     # a fraction of the training data, or a file
  # test: test.csv                     # never seen by the search
  text: $text
  label: $label
  # text: [question, answer]           # two columns: pairs of texts
$of_classes  model: $model   # or a hub id (distilbert-base-uncased), or a folder

settings:                              # fixed for every trial
  schedule: cosine
  max_length: $max_length                       # tokens of a text; longer ones are cut

space:                                 # what is searched (YAML needs the point in 1.0e-5)
  learning_rate: {type: float, $rates, log: true}
  batch_size: {type: categorical, choices: [16, 32, 64]}
  warmup: {type: float, low: 0.0, high: 0.3}
  # momentum: {type: float, low: 0.5, high: 0.99, when: {optimizer: sgd}}
"""

TOKEN_CLASSIFICATION = """\
task:
  kind: token_classification
  train: $train                  # a word and its tag on each line; or Parquet, JSONL
  validation: 0.15                     # a fraction of the training data, or a file
  # test: test.conll                   # never seen by the search
  # tokens: tokens                     # of Parquet, JSONL: the column of lists of words
  # tags: tags                         # of Parquet, JSONL: the column of lists of tags
  model: $model   # or a hub id (distilbert-base-cased), or a folder

settings:                              # fixed for every trial
  schedule: cosine

space:                                 # what is searched (YAML needs the point in 1.0e-5)
  learning_rate: {type: float, low: 1.0e-5, high: 3.0e-3, log: true}
  batch_size: {type: categorical, choices: [8, 16, 32]}
  warmup: {type: float, low: 0.0, high: 0.3}
"""  # noqa: S105 - no password: tokens are words here

LANGUAGE_MODELING = """\
task:
  kind: language_modeling
  train: $train                     # paragraphs of text; or rows of CSV, Parquet, JSONL
  validation: 0.1                      # a fraction of the documents, or a file
  # test: test.txt                     # never seen by the search
  # text: text                         # in a file with columns: the one with the texts
  model: $model   # or a hub id (distilgpt2), or a folder

settings:                              # fixed for every trial
  schedule: cosine
  max_length: 128                      # tokens in a block

space:                                 # what is searched (YAML needs the point in 1.0e-5)
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-2, log: true}
  batch_size: {type: categorical, choices: [8, 16, 32]}
  weight_decay: {type: float, low: 1.0e-3, high: 0.3, log: true}
"""

SEQUENCE_TO_SEQUENCE = """\
task:
  kind: sequence_to_sequence
  train: $train                     # a CSV, Parquet or JSONL file
  validation: 0.1                      # a fraction of the training data, or a file
  # test: test.csv                     # never seen by the search
  source: source                       # the column with the texts that are read
  target: target                       # the column with the texts to write for them
  model: $model   # or a hub id (t5-small), or a folder

settings:                              # fixed for every trial
  schedule: cosine

space:                                 # what is searched (YAML needs the point in 1.0e-5)
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-2, log: true}
  batch_size: {type: categorical, choices: [8, 16, 32]}
  warmup: {type: float, low: 0.0, high: 0.3}
"""

IMAGE_CLASSIFICATION = """\
task:
  kind: image_classification
  train: $train                     # a folder of images for each class; or a .npz file
  validation: 0.15                     # a fraction of the training data, or such data
  # test: test                         # never seen by the search
  # size: 64                           # images of a folder are scaled to this side, in pixels

settings:                              # fixed for every trial
  schedule: cosine
  depth: 3                             # stages of the network

space:                                 # what is searched (YAML needs the point in 1.0e-5)
  learning_rate: {type: float, low: 1.0e-4, high: 1.0e-1, log: true}
  width: {type: categorical, choices: [16, 32, 64]}
  flip: {type: categorical, choices: [true, false]}   # mirror half of the training images
  shift: {type: int, low: 0, high: 4}
"""

TABULAR = """\
task:
  kind: tabular
  train: $train
  validation: $validation                     # a fraction of the training data, or a file
  # test: test.csv                     # never seen by the search
  target: $label                       # the column to predict
  objective_kind: $predicts       # or $instead
$features

settings:                              # fixed for every trial
  schedule: cosine

space:                                 # what is searched (YAML needs the point in 1.0e-5)
  learning_rate: {type: float, low: 1.0e-4, high: 3.0e-2, log: true}
  depth: {type: int, low: 1, high: 4}
  width: {type: int, low: 32, high: 512, log: true}
  dropout: {type: float, low: 0.0, high: 0.5}
"""

FEATURES = """\
  # numeric: [age, income]             # columns of numbers; default: from the data
  # categorical: [city]"""

FUNCTION = """\
# The function `train` of train.py beside this file:
#
#     def train(params, trial):
#         for epoch in range(1, trial.budget + 1):
#             ...
#             trial.report(epoch, {"accuracy": accuracy})
task:
  kind: train:train                    # module:function

space:                                 # passed in `params` (YAML needs the point in 1.0e-5)
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-1, log: true}
  width: {type: int, low: 16, high: 256, log: true}
  optimizer: {type: categorical, choices: [adam, sgd]}
  momentum: {type: float, low: 0.5, high: 0.99, when: {optimizer: sgd}}
"""

COMMAND = """\
# A program that knows nothing of hpsearch. After each part of its training it prints a line:
#
#     {"resource": 1, "accuracy": 0.8}     resource: how far it has trained, in the budget's unit
#
# It finds what it has written into {folder} again when its trial goes on.
task:
  kind: command
  run: $run

space:                                 # its placeholders (YAML needs the point in 1.0e-5)
$space
"""

STARTERS = {
    "text_classification": ON_TEXTS,
    "text_regression": ON_TEXTS,
    "token_classification": TOKEN_CLASSIFICATION,
    "language_modeling": LANGUAGE_MODELING,
    "sequence_to_sequence": SEQUENCE_TO_SEQUENCE,
    "image_classification": IMAGE_CLASSIFICATION,
    "tabular": TABULAR,
    "function": FUNCTION,
    "command": COMMAND,
}
"""The part of each kind: task, settings and space."""

PLAIN_COMMAND = {
    "run": "python train.py --lr {learning_rate} --epochs {budget} --out {folder}",
    "space": "  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-1, log: true}",
}
"""The names of the starter of a command where no command line is given."""

TRAIN = {
    "token_classification": "train.conll",
    "language_modeling": "train.txt",
    "image_classification": "train",
}
"""The name of the training data where none is given; train.csv for all other kinds."""
OWN_CODE = {"function": "function", "command": "program"}
"""The word for the user's own code, by kinds that have no metrics and units of their own."""

OBJECTIVES = {
    "text_classification": ("accuracy", "macro_f1", "mcc", "loss"),
    "text_regression": ("mae", "mse", "pearson", "spearman", "loss"),
    "token_classification": ("f1", "precision", "recall", "accuracy", "loss"),
    "language_modeling": ("perplexity", "loss", "bits_per_byte"),
    "sequence_to_sequence": ("loss", "perplexity", "bits_per_byte"),
    "image_classification": ("accuracy", "macro_f1", "mcc", "loss"),
    "tabular": ("accuracy", "macro_f1", "mcc", "loss"),
    "several labels": ("micro_f1", "macro_f1", "exact_match", "loss"),
    "regression": ("rmse", "mae", "r2", "loss"),
}
"""The metrics of each kind and of its variants, the usual one first."""
SCRATCH = "{scratch: {layers: 2, width: 128}}"
OF_CLASSES = """\
  # label: [toxic, insult]             # columns of 0 and 1: a text may have several labels
  # class_weights: balanced            # a rare class weighs more
"""


def objective(kind: str, metric: str | None) -> dict[str, str]:
    """The names of a starter for its objective; without a metric, for the usual one.

    The kind is one of `STARTERS`, or a variant of one in `OBJECTIVES`.

    Raises:
        UserError: A task of this kind does not have the metric.
    """
    known = OBJECTIVES.get(kind)
    metric = metric or (known or ("accuracy",))[0]
    if known is not None and metric not in known:
        raise UserError(f"{metric!r} is not a metric of {kind}", nearest(metric, known))
    smaller = any(metric.endswith(name) for name in SMALLER_IS_BETTER)
    others = "or " + ", ".join(name for name in known or () if name != metric)
    if known is None:
        others = f"a name that the {OWN_CODE[kind]} reports"
    direction = "minimize" if smaller else "maximize"
    return {"metric": metric, "direction": direction, "others": others}


def quoted(*texts: str) -> str:
    """Texts as YAML: one plain if YAML reads it back so, else in quotes; several as a list."""
    if len(texts) > 1:
        return f"[{', '.join(map(quoted, texts))}]"
    (text,) = texts
    with suppress(yaml.YAMLError, ValueError):
        in_list, by_key = yaml.safe_load(f"[{text}]"), yaml.safe_load(f"key: {text}")
        if in_list == [text] and by_key == {"key": text}:
            return text
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10_000).strip()


def starter(kind: str, **names: str) -> str:
    """The study file to start from.

    Args:
        kind: One of `STARTERS`.
        names: The known parts of the study, as YAML: its name (`study`), its training data
            (`train`), columns, model, objective and budget, or a command line (`PLAIN_COMMAND`).
    """
    usual = {
        "kind": kind,
        "of_classes": OF_CLASSES if kind == "text_classification" else "",
        "study": "my-study",
        "train": TRAIN.get(kind, "train.csv"),
        "validation": "0.15",
        "max_length": "128",
        "text": "text",
        "label": "target" if kind == "tabular" else "label",
        "features": FEATURES,
        "predicts": "classification",
        "instead": "regression",
        "model": SCRATCH,
        "rates": "low: 1.0e-4, high: 3.0e-3",
        "counted": "epochs",
        "total": "9",
        "unit": f": the unit that the {OWN_CODE[kind]} reports in" if kind in OWN_CODE else "",
        "first": "",
        "enqueue": "",
        **objective(kind, None),
    }
    if kind == "command":
        by_epochs = names.get("counted", "epochs") == "epochs"
        usual |= PLAIN_COMMAND | {"first": ", first_rung: 1" if by_epochs else ""}
    own_part = OPENING + STARTERS[kind] + CLOSE
    return Template(own_part).substitute(usual | names)
