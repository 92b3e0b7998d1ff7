"""What can be known of a kind of task without building it: its fields, settings and metrics. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trials.contract import Problem, Setting, Unit
from trials.settings import nearest

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
        "train_loss", "samples_per_second", "tokens_per_second", "padding_ratio", "grad_norm", "learning_rate",
        "peak_memory_bytes", "skipped_steps", "micro_batch",
    }
)  # fmt: skip
"""What every built-in task reports beside its own metrics, as `meters.METRICS`, which is heavier to import."""


@dataclass(frozen=True)
class Field:
    """One key of the `task` part of a study file."""

    name: str
    types: tuple[type, ...]
    about: str
    required: bool = False

    def problem_with(self, value: Any) -> str | None:
        """What is wrong with `value` for this field, as half a sentence; None if nothing is."""
        allowed = (*self.types, int) if float in self.types else self.types  # 1 is a number, though it is an int
        if (bool in self.types) if isinstance(value, bool) else isinstance(value, allowed):
            return None
        return f"must be {' or '.join(_IN_WORDS[t] for t in self.types)}, not {value!r}"


@dataclass(frozen=True)
class TaskDescription:
    """A kind of task.

    Args:
        kind: Its name, as `task.kind` states it.
        fields: The keys it allows beside `kind`, by name.
        settings: The settings it understands, by name; None where it takes any.
        metrics: The metrics it reports; None where only a run can tell.
        tokens: Whether its samples are made of tokens, which a budget can count.
    """

    kind: str
    fields: Mapping[str, Field]
    settings: Mapping[str, Setting] | None
    metrics: frozenset[str] | None
    tokens: bool = True

    def problems_with_budget(self, unit: Unit) -> list[Problem]:
        """That a trial's budget counts what the task's samples do not have."""
        if unit is not Unit.TOKENS or self.tokens:
            return []
        what = f"a {self.kind} task has no tokens to count; give steps, epochs, samples or seconds"
        return [Problem("budget.per_trial.tokens", what)]

    def problems_with(self, task: Mapping[str, Any]) -> list[Problem]:
        """Every unknown, missing or unfit key of a `task` part."""
        problems = []
        for key, value in task.items():
            if key == "kind":
                continue
            if key not in self.fields:
                unknown = f"is no key of a {self.kind} task; {nearest(key, [*self.fields, 'kind'])}"
                problems.append(Problem(f"task.{key}", unknown))
            elif what := self.fields[key].problem_with(value):
                problems.append(Problem(f"task.{key}", what))
        missing = [field for field in self.fields.values() if field.required and field.name not in task]
        return problems + [Problem(f"task.{field.name}", f"is missing; {field.about}") for field in missing]
