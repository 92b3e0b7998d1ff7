"""Descriptions: the fields, settings and metrics of a kind of task."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trials.contract import LENGTHS, Problem, Setting, Unit
from trials.settings import Settings, nearest, setting

_IN_WORDS: dict[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    dict: "a mapping",
    list: "a list",
    bool: "true or false",
}

LOOP_METRICS = frozenset(
    {
        "train_loss", "samples_per_second", "tokens_per_second", "padding_ratio", "grad_norm",
        "learning_rate", "peak_memory_bytes", "skipped_steps", "micro_batch",
    }
)  # fmt: skip
"""The common metrics of all built-in tasks, as `instruments.METRICS`, but light to import."""
NETWORK_METRICS = LOOP_METRICS - {"tokens_per_second", "padding_ratio"}
"""The common metrics of tasks whose samples are not made of tokens."""
TABLE_FILES = "a CSV, Parquet or JSONL file"
IN_FOLDS = " folds"  # after their number: the value of `validation` where the budget has them

WITHOUT_TOKENS = frozenset(
    {
        "max_length", "bucketing", "model", "freeze_layers",
        "gradient_checkpointing", "lora", "lora_rank", "lora_alpha", "lora_targets",
    }
)  # fmt: skip
"""The loop's settings that need samples of tokens."""


@dataclass(frozen=True)
class Field:
    """One key of the `task` part of a study file. `limits`: more keywords of JSON Schema."""

    name: str
    types: tuple[type, ...]
    about: str
    required: bool = False
    limits: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def problem_with(self, value: Any) -> str | None:
        """The problem of a value, as half a sentence; None if it has none."""
        if not self._has_type(value):
            wanted = " or ".join(_IN_WORDS[kind] for kind in self.types)
            return f"must be {wanted}, not {value!r}"
        if isinstance(value, str):
            return _problem_with_text(value, self.limits)
        if isinstance(value, list):
            return _problem_with_list(value, self.limits)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _problem_with_number(value, self.limits)
        return None

    def _has_type(self, value: Any) -> bool:
        if isinstance(value, bool):  # to Python also an int
            return bool in self.types
        if float in self.types and isinstance(value, int):
            return True
        return isinstance(value, self.types)


def _problem_with_text(value: str, limits: Mapping[str, Any]) -> str | None:
    if not value.strip() and limits.get("minLength"):
        return "is empty; remove it, or name something"
    known = limits.get("enum")
    if known is not None and value not in known:
        return f"must be {' or '.join(known)}, not {value!r}; {nearest(value, known)}"
    return None


def _problem_with_list(value: Sequence[Any], limits: Mapping[str, Any]) -> str | None:
    least, most = limits.get("minItems", 0), limits.get("maxItems", math.inf)
    if not least <= len(value) <= most:
        count = f"{least}" if least == most else f"at least {least}"
        return f"must be a list of {count}, not of {len(value)}"
    for place, part in enumerate(value):
        if not isinstance(part, str) or not part:
            return f"must be a list of texts, and has {part!r}"
        if part in value[:place] and limits.get("uniqueItems"):
            return f"names {part!r} twice; name each once"
    return None


def _problem_with_number(value: float, limits: Mapping[str, Any]) -> str | None:
    least, above = limits.get("minimum"), limits.get("exclusiveMinimum")
    below = limits.get("exclusiveMaximum")
    if least is not None and not value >= least:
        return f"must be at least {least}, not {value}"
    if above is not None and below is not None and not above < value < below:
        return f"must be between {above} and {below}, not {value}"
    return None


def files(train: str, validation: str = "a file", test: str = "a file that") -> tuple[Field, ...]:
    """The fields of the data files.

    Args:
        train: The kinds of training data, in words.
        validation: The kinds of validation data beside a fraction.
        test: The kinds of test data, with the word before "the search never sees".
    """
    about = f"a fraction of the training data such as 0.15, or {validation}"
    fraction = {"exclusiveMinimum": 0, "exclusiveMaximum": 1}
    return (
        Field("train", (str,), f"the training data: {train}", required=True),
        Field("validation", (float, str), about, required=True, limits=fraction),
        Field("test", (str,), f"{test} the search never sees"),
    )


def split_seed(samples: str) -> Field:
    about = f"which {samples} a validation fraction picks; the same for every trial"
    return Field("split_seed", (int,), about, limits={"minimum": 0})


GROUP = Field(
    "group",
    (str,),
    "the column whose rows of one value stay together: all trained on, or all validated",
)


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """The loop's settings for a small network, whose samples are not made of tokens."""

    LEFT_OUT: ClassVar[frozenset[str]] = WITHOUT_TOKENS

    learning_rate: float = setting(
        1e-3, "Peak learning rate; the schedule multiplies it.", above=0, high=10
    )


def by_name(fields: Iterable[Field]) -> dict[str, Field]:
    return {field.name: field for field in fields}


@dataclass(frozen=True)
class TaskDescription:
    """A kind of task."""

    kind: str  # the value of `task.kind`
    fields: Mapping[str, Field]  # the keys beside `kind`, by name
    settings: Mapping[str, Setting] | None  # the settings, by name; None if it takes any
    metrics: frozenset[str] | None  # the reported metrics; None if only a run knows them
    units: frozenset[Unit] = frozenset(LENGTHS)  # those that a budget can count
    metrics_of: Callable[[Mapping[str, Any]], frozenset[str] | None] | None = None
    """The metrics for a `task` part, which may have mistakes; None if all parts have the same."""
    per_token: tuple[frozenset[str], str] | None = None
    """The metrics that compare only models with one tokenizer, and the metric that compares all of
    them."""

    def of_part(self, task: Mapping[str, Any]) -> TaskDescription:
        """The description with the metrics of a `task` part alone."""
        if self.metrics_of is None:
            return self
        return dataclasses.replace(self, metrics=self.metrics_of(task))

    def problems_with_budget(self, unit: Unit) -> list[Problem]:
        """The problem of a budget in a unit that such a task does not count."""
        if unit in self.units:
            return []
        *others, last = [each.value for each in Unit if each in self.units]
        give = f"give {', '.join(others)} or {last}"
        what = f"a {self.kind} task has no {unit.value} to count; {give}"
        return [Problem(f"budget.per_trial.{unit.value}", what)]

    def problems_with_names(
        self, task: Mapping[str, Any], settings: Mapping[str, Any], space: Mapping[str, bool]
    ) -> list[Problem]:
        """The mistakes in names of settings and parameters that depend on the `task` part. `space`:
        for each parameter, whether every trial has a value for it."""
        return []

    def problems_with(self, task: Mapping[str, Any]) -> list[Problem]:
        problems = []
        for key, value in task.items():
            if what := self._problem_with_key(key, value):
                problems.append(Problem(f"task.{key}", what))
        for name, field in self.fields.items():
            if field.required and name not in task:
                problems.append(Problem(f"task.{name}", f"is missing; {field.about}"))
        return problems

    def _problem_with_key(self, key: str, value: Any) -> str | None:
        if key == "kind":
            return None
        field = self.fields.get(key)
        if field is not None:
            return field.problem_with(value)
        hint = nearest(key, [*self.fields, "kind"])
        return f"is not a key of a {self.kind} task; {hint}"


ASK = TaskDescription(kind="ask", fields={}, settings=None, metrics=None)
"""The kind of a study whose trials are asked for in Python."""
