"""The study files that `hpsearch init` writes: one for each kind of task, with comments.

Each is an opening, a part for its kind with task, settings and space, and a close, of `templates/`.
The command fills in `$train` and the like.
"""

from contextlib import suppress
from importlib import resources
from string import Template

import yaml

from hpsearch.errors import UserError
from trials.settings import SMALLER_IS_BETTER, nearest

FEATURES = """\
  # numeric: [age, income]             # columns of numbers; default: from the data
  # categorical: [city]"""

STARTERS = (
    *("text_classification", "text_regression", "token_classification", "language_modeling"),
    *("sequence_to_sequence", "image_classification", "tabular", "function", "command"),
)
"""The kinds of task. Each has a template with task, settings and space; two share one."""

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

PAUSED = "Others pause, and go on if their turn comes."
KEPT = "Others pause if they keep {}; if not, the hopeless ones are stopped."
NOT_KEPT = """\
The command does not use {folder}, so a trial that paused would begin again:
  # none pauses, and the hopeless ones are stopped."""

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
OF_TREES = {
    "counted": "steps",
    "total": "270, report_every: 30",
    "first": ", first_rung: 30",
    "other_units": "seconds",
    "gpu": "0",
}
"""The budget of boosting: each step adds a tree, or one for each of more than two classes."""
SCRATCH = "{scratch: {layers: 2, width: 128}}"
OF_CLASSES = """\
  # label: [toxic, insult]             # columns of 0 and 1: a text may have several labels
  # class_weights: balanced            # a rare class weighs more
"""


def objective(kind: str, metric: str | None) -> dict[str, str]:
    """The names of a starter for its objective, or else the usual one of a kind or its variant
    (`OBJECTIVES`). Raises UserError if it does not have the metric."""
    known = OBJECTIVES.get(kind)
    metric = metric or (known or ("accuracy",))[0]
    if known is not None and metric not in known:
        raise UserError(f"{metric!r} is not a metric of {kind}", nearest(metric, known))
    others = "or " + ", ".join(name for name in known or () if name != metric)
    if known is None:
        others = f"a name that the {OWN_CODE[kind]} reports"
    return {"metric": metric, "direction": direction_of(metric), "others": others}


def direction_of(metric: str) -> str:
    smaller = any(metric.lower().endswith(name) for name in SMALLER_IS_BETTER)
    return "minimize" if smaller else "maximize"


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


def _at_rungs(kind: str, run: str) -> str:
    if kind == "function":
        return KEPT.format("a checkpoint (trial.save)")
    if kind != "command":
        return PAUSED
    return (
        KEPT.format("their state in {folder}") if "{folder}" in run.replace("{{", "") else NOT_KEPT
    )


def starter(kind: str, **names: str) -> str:
    """The study file to start from, of one of `STARTERS`; `names` are the known parts, as YAML,
    such as `study`, `train`, or those of `PLAIN_COMMAND`."""
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
        "other_units": "steps, samples, seconds",
        "gpu": "auto",
        "unit": f": the unit that the {OWN_CODE[kind]} reports in" if kind in OWN_CODE else "",
        "first": "",
        "enqueue": "",
        **objective(kind, None),
    }
    if kind == "command":
        by_epochs = names.get("counted", "epochs") == "epochs"
        usual |= PLAIN_COMMAND | {"report": "", "first": ", first_rung: 1" if by_epochs else ""}
    usual["at_rungs"] = _at_rungs(kind, names.get("run", usual.get("run", "")))
    if kind == "tabular":
        usual |= OF_TREES
    own_part = "on_texts" if kind.startswith("text_") else kind
    folder = resources.files(__package__).joinpath("templates")
    parts = [folder.joinpath(f"{name}.yaml") for name in ("opening", own_part, "close")]
    return Template("".join(part.read_text("utf-8") for part in parts)).substitute(usual | names)
