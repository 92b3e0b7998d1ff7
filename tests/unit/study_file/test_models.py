"""Trial budgets in tokens: in study files, and where a task has none."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.errors import SpecError
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.reading import parse
from trials.contract import Unit

TASKS: dict[str, dict[str, Any]] = {
    "text_classification": {
        "train": "a.csv",
        "validation": 0.2,
        "text": "t",
        "label": "l",
        "model": "m",
    },
    "image_classification": {"train": "images", "validation": 0.2},
    "tabular": {"train": "a.csv", "validation": 0.2, "target": "y"},
}


def study(kind: str, **budget: Any) -> str:
    written = {
        "study": "counted",
        "task": {"kind": kind, **TASKS.get(kind, {})},
        "space": {"learning_rate": {"type": "float", "low": 1.0e-5, "high": 1.0e-3, "log": True}},
        "objective": {"metric": "accuracy", "direction": "maximize"},
        "budget": {"trials": 5, "per_trial": budget},
    }
    return yaml.safe_dump(written)


def test_a_trial_can_be_measured_in_tokens():
    spec = parse(study("text_classification", tokens=1000), base=Path("/nowhere"))
    budget = trial_budget(spec)
    assert (budget.unit, budget.total) == (Unit.TOKENS, 1000)
    assert all(level == int(level) for level in budget.report_at)


@pytest.mark.parametrize(
    ("kind", "unit", "known"),
    [
        ("image_classification", "tokens", "steps, epochs, samples or seconds"),
        ("tabular", "tokens", "steps or seconds"),
        ("tabular", "epochs", "steps or seconds"),
    ],
)
def test_a_task_refuses_to_count_what_it_has_not(kind, unit, known):
    with pytest.raises(SpecError, match=f"a {kind} task has no {unit} to count; give {known}"):
        parse(study(kind, **{unit: 1000}), base=Path("/nowhere"))


def test_tokens_are_whole():
    with pytest.raises(SpecError, match="tokens"):
        parse(study("text_classification", tokens=10.5), base=Path("/nowhere"))
