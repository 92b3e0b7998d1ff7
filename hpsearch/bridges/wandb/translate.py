"""A study file from the configuration of a W&B sweep.

Source: "Sweep configuration options" in the documentation of Weights & Biases.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpsearch.bridges.draft import USUAL_TRIALS, StudyDraft
from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.text.text_file import text_of
from hpsearch.study_file.types import is_number, is_whole_number
from trials.contract import Problem
from trials.descriptions import yaml_source
from trials.descriptions.command_line import GIVEN, SEED

LENGTHS = ("epochs", "max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "total_epochs")
"""Names of a constant that says how long a program trains."""
SAMPLERS = {"random": "random", "grid": "brute_force"}
"""The sampler of each method; our default for the others."""
DISTRIBUTIONS = (
    *("categorical", "int_uniform", "uniform", "q_uniform", "log_uniform"),
    *("log_uniform_values", "q_log_uniform_values"),
)
"""The distributions that a study file has, too."""
Part = Mapping[str, Any]


def translate(source: str, study: str | None) -> StudyDraft:
    """The study file of a sweep, under a name of its own or that of the sweep.

    Raises:
        UserError: The file cannot be read, or is not a sweep.
        SpecError: It is YAML with mistakes, or has parameters that a study file cannot have.
    """
    path = Path(source)
    found = yaml_source.read(text_of(path))
    document = found.value if isinstance(found.value, dict) else {}
    problems = list(found.problems)
    if "study" in document:
        raise UserError(f"{path} is a study file already", f"check it with: hpsearch check {path}")
    if not problems and not isinstance(document.get("parameters"), dict):
        what = f"{path} has no parameters, as a sweep of W&B has"
        raise UserError(what, "name a sweep of W&B, or the URL of an Optuna storage")
    name = study or str(document.get("name") or "sweep")
    draft = StudyDraft(f"{path.name}, a file of W&B", name)
    if not problems:
        sweep = _Sweep(document, draft)
        sweep.carry_over()
        problems = sweep.problems
    if problems:
        lines = [f"{path.name}:{found.line_of(each.where)}: {each.what}" for each in problems]
        raise SpecError(lines)
    return draft


class _Sweep:
    """One sweep that is carried over into a draft."""

    def __init__(self, document: Mapping[str, Any], draft: StudyDraft) -> None:
        self._document = document
        self._draft = draft
        self.problems: list[Problem] = []
        """The parts that a study file cannot have, by their places in the sweep."""
        self._settings: dict[str, Any] = {}
        self._placeholders: dict[str, str] = {}
        """The placeholder of the command for each parameter of the sweep."""
        self._length: float | None = None
        metric = document.get("metric")
        self._metric = metric if isinstance(metric, dict) else {}

    def carry_over(self) -> None:
        """Fill the draft."""
        for name, part in self._document["parameters"].items():
            self._parameter(str(name), part)
        objective = {
            "metric": str(self._metric.get("name") or "loss"),
            "direction": self._metric.get("goal", "minimize"),
        }
        self._draft.sections = {
            "task": {"kind": "command", "run": self._command()},
            "settings": self._settings,
            "objective": objective,
            "budget": self._budget(),
            "search": self._search(),
        }
        example = f'{{"resource": 1, "{objective["metric"]}": 0.5}}'
        self._remark(f"the program must print a line such as {example} as it trains")

    def _remark(self, what: str) -> None:
        self._draft.remarks.append(what)

    def _parameter(self, name: str, part: Any) -> None:
        place = f"parameters.{name}"
        if name == SEED:
            self._placeholders[name] = SEED  # each trial has a seed of its own
        elif name in GIVEN or set(name) & set("{}[]:! "):
            what = f"{name} cannot be a placeholder of the command; rename it"
            self.problems.append(Problem(place, what))
        elif isinstance(part, dict) and "value" in part:
            self._constant(name, part["value"])
        else:
            try:
                self._draft.add(name, _parameter(part))
            except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
                known = ", ".join(DISTRIBUTIONS)
                what = f"{name} must have one of the distributions {known}, with its numbers"
                self.problems.append(Problem(place, what))
            self._placeholders[name] = name

    def _constant(self, name: str, value: Any) -> None:
        if name in LENGTHS and is_number(value) and self._length is None:
            self._length = value
            self._placeholders[name] = "budget"
            self._remark(f"{name} is how long a trial trains: {{budget}}")
        else:
            self._settings[name] = value
            self._placeholders[name] = name

    def _command(self) -> str:
        if "command" in self._document:
            self._remark("the sweep's own command is left out: run is the usual one; check it")
        program = str(self._document.get("program") or "train.py")
        words = [f"--{name}={{{each}}}" for name, each in self._placeholders.items()]
        return " ".join(["python", shlex.quote(program), *words])

    def _budget(self) -> dict[str, Any]:
        budget = {
            "trials": self._document.get("run_cap") or USUAL_TRIALS,
            "per_trial": {"epochs": self._length or 1},
        }
        if "run_cap" not in self._document:
            self._remark(f"the sweep has no run_cap: it ends after {USUAL_TRIALS} trials here")
        if self._length is None:
            what = "a sweep does not say how long a trial trains; set per_trial"
            self._remark(f"{what}, and write {{budget}} into the command")
        if is_number(self._metric.get("target")):
            budget["target"] = self._metric["target"]
        return budget

    def _search(self) -> dict[str, Any]:
        sampler = SAMPLERS.get(str(self._document.get("method")))
        ranges = [each for each in self._draft.space.values() if each["type"] == "float"]
        if sampler == "brute_force" and any("step" not in each for each in ranges):
            self._remark("a grid needs choices or steps, and a parameter has a range: random")
            sampler = "random"
        search: dict[str, Any] = {} if sampler is None else {"sampler": sampler}
        if "early_terminate" not in self._document:
            self._remark("each trial trains in full; remove pruner: none to pause weak trials")
            return {**search, "pruner": "none"}
        self._remark("weak trials pause instead of ending, and the best of them continue")
        return search


def _parameter(part: Part) -> dict[str, Any]:
    """A parameter of a study from one of a sweep. Raises KeyError, TypeError or ValueError if it
    has another distribution, or lacks numbers."""
    kind = part.get("distribution", "categorical" if "values" in part else None)
    if kind == "categorical":
        return {"type": "categorical", "choices": list(part["values"])}
    if kind is None and is_whole_number(part["min"]) and is_whole_number(part["max"]):
        kind = "int_uniform"
    low, high = float(part["min"]), float(part["max"])
    match kind:
        case "int_uniform":
            return {"type": "int", "low": int(low), "high": int(high)}
        case "q_uniform":
            return _steps(low, high, part.get("q", 1))
        case "q_log_uniform_values":
            return {"type": "int", "low": max(1, round(low)), "high": round(high), "log": True}
        case "log_uniform":
            bounds = {"low": _rounded(math.exp(low)), "high": _rounded(math.exp(high))}
            return {"type": "float", **bounds, "log": True}
        case "log_uniform_values":
            return {"type": "float", "low": low, "high": high, "log": True}
        case "uniform" | None:
            return {"type": "float", "low": low, "high": high}
    raise ValueError(kind)


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")


def _steps(low: float, high: float, q: float) -> dict[str, Any]:
    """Multiples of q between two bounds: ints if q is a whole number."""
    first, last = math.ceil(low / q - 1e-9), math.floor(high / q + 1e-9)
    if float(q).is_integer():
        return {"type": "int", "low": int(first * q), "high": int(last * q), "step": int(q)}
    return {"type": "float", "low": _rounded(first * q), "high": _rounded(last * q), "step": q}
