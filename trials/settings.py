"""The settings of the built-in training loop: one table, and the frozen object parsed from it.

Each field of `Settings` is one row of `TABLE`. A setting may be fixed under `settings` or searched
under `space` of a study file.
"""

import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, ClassVar, Self, get_args, get_type_hints

from trials.contract import Goal, Problem, Setting, TaskError

OPTIMIZERS = ("adamw", "adam", "sgd", "nesterov", "adafactor", "muon")
SCHEDULES = ("constant", "linear", "cosine", "one_cycle", "step", "wsd")
PRECISIONS = ("auto", "bf16", "fp16", "fp32")
COMPILE = ("auto", "never")
SMALLER_IS_BETTER = frozenset({
    "loss", "train_loss", "perplexity", "bits_per_byte", "mse", "rmse", "mae", "padding_ratio",
    "peak_memory_bytes", "skipped_steps",
})  # fmt: skip
LARGER_IS_BETTER = frozenset({
    "accuracy", "macro_f1", "micro_f1", "exact_match", "mcc", "f1", "precision", "recall", "r2",
    "pearson", "spearman", "samples_per_second", "tokens_per_second",
})  # fmt: skip


def setting(default: Any, about: str, **limits: Any) -> Any:
    """A field of `Settings` or a subclass, with the other fields of its `Setting` as limits. The
    field's annotation gives `type` and `nullable`."""
    return field(default=default, metadata={"about": about, **limits})


@dataclass(frozen=True)
class Settings:
    """Every setting of one run; `Settings.parse` builds it. A task adds its own settings in a
    subclass, and names in `LEFT_OUT` those that mean nothing to it."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset()

    learning_rate: float = setting(
        1e-4, "Peak learning rate; the schedule multiplies it.", above=0, high=10
    )
    layer_decay: float = setting(
        1.0,
        "The learning rate of each layer as a share of that of the layer above it.",
        above=0,
        high=1,
    )
    weight_decay: float = setting(
        0.01, "Weight decay of matrices; biases and norms have none.", low=0, high=10
    )
    batch_size: int = setting(32, "Samples in one optimizer step (the effective batch).", low=1)
    micro_batch: int | str | None = setting(
        None,
        "Samples in one forward pass; null is the whole batch, auto the most that fit. For memory; "
        "the order of sums, random draws and batch norms change with it.",
        low=1,
        word="auto",
    )
    optimizer: str = setting("adamw", "The optimizer.", choices=OPTIMIZERS)
    beta1: float = setting(
        0.9, "Decay of the gradient's running mean (adam, adamw, muon).", low=0, high=0.9999
    )
    beta2: float = setting(
        0.999,
        "Decay of the squared gradient's running mean (adam, adamw, muon).",
        low=0,
        high=0.999999,
    )
    epsilon: float = setting(1e-8, "Added to the denominator (adam, adamw, muon).", above=0, high=1)
    momentum: float = setting(0.9, "Momentum (sgd, nesterov, muon).", low=0, high=0.9999)
    schedule: str = setting(
        "linear", "Shape of the learning rate over the full budget.", choices=SCHEDULES
    )
    warmup: float = setting(
        0.1, "Fraction of the full budget in which the learning rate rises.", low=0, high=0.9
    )
    decay_fraction: float = setting(
        0.2,
        "Fraction of the full budget in which the learning rate falls at the end (wsd).",
        above=0,
        high=1,
    )
    max_grad_norm: float | None = setting(
        1.0, "Gradients are scaled down to this norm; null leaves them.", above=0
    )
    ema: float | None = setting(
        None,
        "Decay of a running mean of the weights, evaluated and saved in their place; null "
        "keeps none.",
        above=0,
        high=0.999999,
    )
    label_smoothing: float = setting(
        0.0, "Share of each label spread over all classes.", low=0, high=0.9
    )
    dropout: float | None = setting(
        None,
        "Every dropout probability of the model; null keeps the model's own.",
        low=0,
        high=0.95,
    )
    freeze_layers: int = setting(
        0,
        "Train neither the embeddings nor this many of the lowest layers; 0 trains everything.",
        low=0,
    )
    lora: bool = setting(
        False, "Train low-rank adapters of the layers, and a classifier's head, on a frozen base."
    )
    lora_rank: int = setting(8, "Rank of the adapters (lora).", low=1, high=1024)
    lora_alpha: float = setting(
        16.0, "An adapter's output is multiplied by this over its rank (lora).", above=0, high=65536
    )
    lora_targets: str = setting(
        "auto",
        "Modules to adapt, by name, separated by commas; auto is every matrix of the layers "
        "(lora).",
    )
    gradient_checkpointing: bool = setting(
        False,
        "Compute activations again in the backward pass: less memory, more time, same results.",
    )
    precision: str = setting(
        "auto",
        "Arithmetic of the forward pass; auto is bf16 if the device has it, else fp16 on a GPU "
        "and fp32 on a CPU.",
        choices=PRECISIONS,
    )
    compile: str = setting(
        "auto", "auto captures steps on a GPU and replays them.", choices=COMPILE
    )
    patience: int | None = setting(
        None,
        "Stop after this many reports without improvement, those of one step counted once; "
        "null never stops early.",
        low=1,
    )
    min_delta: float = setting(0.0, "Only an improvement larger than this counts.", low=0)
    monitor: str = setting(
        "loss", "The metric that decides on the best checkpoint and on stopping early."
    )
    max_length: int = setting(
        128, "Longest text in tokens; longer ones are cut.", low=4, high=65536
    )
    bucketing: bool = setting(
        True, "Batch texts of similar length together: less padding, same samples."
    )
    eval_batch_size: int = setting(
        128, "Samples in one evaluation batch. Changes memory, and results by rounding.", low=1
    )
    keep_checkpoints: int = setting(
        2,
        "Newest checkpoints that a trial keeps whole while it trains, beside the weights of "
        "its best one.",
        low=1,
    )
    save_every_steps: int | None = setting(
        None, "Also save between reports, whenever this many steps have passed.", low=1
    )
    model: str | None = setting(
        None, "Train this model (hub id or local folder) instead of the task's own."
    )

    def monitor_mode(self, goal: Goal | None) -> str:
        """`min` if a smaller `monitor` is better, `max` if a larger one is. Raises TaskError if
        neither the objective nor the metric's name says which is better."""
        if goal is not None and goal.metric == self.monitor:
            return "max" if goal.maximize else "min"
        if self.monitor in SMALLER_IS_BETTER:
            return "min"
        if self.monitor in LARGER_IS_BETTER:
            return "max"
        what = (
            "could be better when larger or when smaller; make it the objective, with its direction"
        )
        raise TaskError.at("settings.monitor", f"{self.monitor!r} {what}")

    @classmethod
    def table(cls) -> dict[str, Setting]:
        hints = get_type_hints(cls)
        specs = [spec for spec in dataclasses.fields(cls) if spec.name not in cls.LEFT_OUT]
        return {spec.name: _row(spec, hints[spec.name]) for spec in specs}

    @classmethod
    def parse(cls, params: Mapping[str, Any]) -> Self:
        """Check `params` against the table and freeze them. Raises TaskError with every unknown
        name and every value that does not fit."""
        table = cls.table()
        problems = problems_with(params, table)
        if problems:
            raise TaskError(problems)
        values = dict(params)
        for name, value in params.items():
            if table[name].type is float and value is not None:
                values[name] = float(value)
        return cls(**values)


def _row(spec: dataclasses.Field[Any], hint: Any) -> Setting:
    types = get_args(hint) or (hint,)
    nullable = NoneType in types
    return Setting(spec.name, types[0], spec.default, nullable=nullable, **spec.metadata)


TABLE: dict[str, Setting] = Settings.table()
"""Every setting by name."""


def problems_with(params: Mapping[str, Any], table: Mapping[str, Setting] = TABLE) -> list[Problem]:
    """Every unknown name and every unfit value in `params`; `where` is ``settings.NAME``."""
    problems = []
    for name, value in params.items():
        where = f"settings.{name}"
        if name not in table:
            what = f"is not a setting of this task; {nearest(name, table)}"
            problems.append(Problem(where, what))
            continue
        unfit = table[name].problem_with(value)
        if unfit is not None:
            problems.append(Problem(where, unfit))
    return problems


def in_full(number: float) -> str:
    """A number that another one is compared with, in all its digits: 1234567 and 0.5."""
    is_short = abs(number) < 1e16 and number == int(number)
    return str(int(number)) if is_short else repr(number)


def as_scalar(value: Any) -> Any:
    """A value without parts: a list or a mapping as its JSON text, such as [64, 64]."""
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    return value


def some(names: Iterable[object], most: int = 20) -> str:
    """The first of some names, and how many others there are: ``a, b and 3 more``."""
    all_names = list(map(str, names))
    first, more = ", ".join(all_names[:most]), len(all_names) - most
    return f"{first} and {more} more" if more > 0 else first


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown `name`: the nearest known one, or a list of them all."""
    names = [str(each) for each in known]
    matches = difflib.get_close_matches(str(name), names, n=1)
    if matches:
        return f"did you mean {matches[0]}?"
    if not names:
        return "none is known here"
    return f"known are {', '.join(sorted(set(names)))}"
