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
from hpsearch.study_file.text import yaml_source
from hpsearch.study_file.types import is_number, is_whole_number
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
_READ = ("program", "command", "method", "metric", "parameters", "early_terminate", "run_cap")
_NEEDLESS = ("name", "description", "project", "entity", "$schema")
_USUAL_COMMAND = ["${env}", "${interpreter}", "${program}", "${args}"]
_WORDS = {"${env}": [], "${interpreter}": ["python"], "${args_json_file}": ["{params}"]}

Part = Mapping[str, Any]


def translate(source: str, study: str | None) -> StudyDraft:
    """The study file of a sweep, under a name of its own or that of the sweep. Raises UserError if
    the file cannot be read, or is not a sweep, and SpecError if it is YAML with mistakes."""
    path = Path(source)
    found = yaml_source.read(yaml_source.text_of(path))
    if found.problems:
        lines = [f"{path.name}:{found.line_of(each.where)}: {each.what}" for each in found.problems]
        raise SpecError(lines)
    document = found.value if isinstance(found.value, dict) else {}
    if "study" in document:
        raise UserError(f"{path} is a study file already", f"check it with: hpsearch check {path}")
    if not isinstance(document.get("parameters"), dict):
        what = f"{path} has no parameters, as a sweep of W&B has"
        raise UserError(what, "name a sweep of W&B, or the URL of an Optuna storage")
    name = study or str(document.get("name") or "sweep")
    draft = StudyDraft(f"{path.name}, a file of W&B", name)
    return _Sweep(document, found.lines, draft).draft()


class _Sweep:
    """One sweep that is carried over into a draft, with the line of each place in it."""

    def __init__(
        self, document: Mapping[str, Any], lines: Mapping[str, int], draft: StudyDraft
    ) -> None:
        self._document = document
        self._lines = lines
        self._draft = draft
        self._settings: dict[str, Any] = {}
        self._placeholders: dict[str, str] = {}
        """The placeholder of the command for each parameter of the sweep."""
        self._length: float | None = None
        metric, stop = document.get("metric"), document.get("early_terminate")
        self._metric = metric if isinstance(metric, dict) else {}
        self._stop = stop if isinstance(stop, dict) else None

    def draft(self) -> StudyDraft:
        for name, part in self._document["parameters"].items():
            self._parameter(str(name), part)
        objective = self._objective()
        self._draft.sections = {
            "task": {"kind": "command", "run": self._command()},
            "settings": self._settings,
            "objective": objective,
            "budget": self._budget(),
            "search": self._search(),
        }
        for key in self._document:
            if key not in _READ and key not in _NEEDLESS:
                self._remark(f"{key} has no counterpart and is left out", key)
        example = f'{{"resource": 1, "{objective["metric"]}": 0.5}}'
        self._remark(f"the program must print a line such as {example} as it trains")
        return self._draft

    def _remark(self, what: str, place: str | None = None) -> None:
        line = None if place is None else self._lines.get(place)
        self._draft.remarks.append(what if line is None else f"line {line}: {what}")

    def _parameter(self, name: str, part: Any) -> None:
        place = f"parameters.{name}"
        try:
            self._carry(name, part, place)
        except (KeyError, TypeError, ValueError, OverflowError):
            self._lose(name, "it lacks numbers that it needs", place)

    def _lose(self, name: str, why: str, place: str) -> None:
        self._remark(f"{name} cannot be carried over: {why}", place)

    def _carry(self, name: str, part: Any, place: str) -> None:
        if not isinstance(part, dict):
            self._lose(name, "it is not a mapping", place)
        elif name == SEED:
            self._placeholders[SEED] = SEED
            self._remark("each trial has a seed of its own, {seed}; it is not searched", place)
        elif name in GIVEN or set(name) & set("{}[]:! "):
            self._lose(name, "it cannot be a placeholder of the command; rename it", place)
        elif "parameters" in part:
            self._lose(name, f"nested; give each part a flag, such as --{name}.part", place)
        elif "value" in part:
            self._constant(name, part["value"], place)
        elif _kind(part) not in DISTRIBUTIONS:
            what = f"the distribution {_kind(part)!r} is not known"
            self._lose(name, f"{what}; write a range yourself", place)
        else:
            self._draft.add(name, _parameter(part))
            if name in self._draft.space:
                self._placeholders[name] = name

    def _constant(self, name: str, value: Any, place: str) -> None:
        if name in LENGTHS and is_number(value) and self._length is None:
            self._length = value
            self._placeholders[name] = "budget"
            self._remark(f"{name} is how long a trial trains: {{budget}}", place)
        elif value is None or isinstance(value, dict | list):
            self._lose(name, "a setting is a number, text, true or false", place)
        else:
            self._settings[name] = value
            self._placeholders[name] = name

    def _command(self) -> str:
        command = self._document.get("command") or _USUAL_COMMAND
        if isinstance(command, str):
            command = shlex.split(command)
        words = [each for word in map(str, command) for each in self._words(word)]
        if not any("{" in word for word in words):
            what = "the command does not take the parameters: they are given as a file, {params}"
            self._remark(what, "command")
            words.append("{params}")
        return " ".join(words)

    def _words(self, word: str) -> list[str]:
        """The words of a command for one of W&B's."""
        if word in _WORDS:
            return _WORDS[word]
        if word.startswith("${args"):
            dashes = "" if word == "${args_no_hyphens}" else "--"
            return [f"{dashes}{name}={{{each}}}" for name, each in self._placeholders.items()]
        if word == "${program}":
            return [_as_word(str(self._document.get("program") or "train.py"))]
        if word.startswith("${"):
            self._lose(word, "write into run what it stands for", "command")
            return []
        return [_as_word(word)]

    def _objective(self) -> dict[str, Any]:
        if not self._metric.get("name"):
            self._remark("the sweep names no metric; write yours", "metric")
        goal = self._metric.get("goal", "minimize")
        return {"metric": str(self._metric.get("name") or "loss"), "direction": goal}

    def _budget(self) -> dict[str, Any]:
        cap = self._document.get("run_cap")
        if cap is None:
            what = f"the sweep has no run_cap: it ends after {USUAL_TRIALS} trials here; raise it"
            self._remark(what)
        budget = {"trials": cap or USUAL_TRIALS, "per_trial": {"epochs": self._length or 1}}
        most = None if self._stop is None else self._stop.get("max_iter")
        if self._length is None and most is not None:
            budget["per_trial"] = {"steps": most}
            what = "max_iter counts calls of wandb.log; a step here is what the program reports as"
            self._remark(f'{what} "resource"', "early_terminate.max_iter")
        elif self._length is None:
            what = "a sweep does not say how long a trial trains; set per_trial"
            self._remark(f"{what}, and write {{budget}} into the command")
        if is_number(self._metric.get("target")):
            budget["target"] = self._metric["target"]
        return budget

    def _search(self) -> dict[str, Any]:
        sampler = SAMPLERS.get(str(self._document.get("method")))
        ranges = [each for each in self._draft.space.values() if each["type"] == "float"]
        if sampler == "brute_force" and any("step" not in each for each in ranges):
            what = "a grid needs choices or steps, and a parameter has a range: sampled at random"
            self._remark(what, "method")
            sampler = "random"
        search: dict[str, Any] = {} if sampler is None else {"sampler": sampler}
        if self._stop is None:
            what = "a sweep without early_terminate trains each trial in full; remove pruner: none"
            self._remark(f"{what} to pause weak trials")
            return {**search, "pruner": "none"}
        what = "hyperband stops trials for good; promotion pauses them and continues the best"
        self._remark(what, "early_terminate")
        return {**search, "pruner": {"kind": "promotion", "eta": self._stop.get("eta", 3)}}


def _kind(part: Part) -> str:
    """The distribution of a parameter, stated or usual."""
    if "distribution" in part or "values" in part:
        return str(part.get("distribution", "categorical"))
    if is_whole_number(part.get("min")) and is_whole_number(part.get("max")):
        return "int_uniform"
    return "uniform"


def _parameter(part: Part) -> dict[str, Any]:
    """A parameter of a study from one of a sweep."""
    kind = _kind(part)
    if kind == "categorical":
        return {"type": "categorical", "choices": list(part["values"])}
    low, high = float(part["min"]), float(part["max"])
    if kind == "int_uniform":
        return {"type": "int", "low": int(low), "high": int(high)}
    if kind == "q_uniform":
        return _steps(low, high, part.get("q", 1))
    if kind == "q_log_uniform_values":
        return {"type": "int", "low": max(1, round(low)), "high": round(high), "log": True}
    if kind == "log_uniform":
        low, high = _rounded(math.exp(low)), _rounded(math.exp(high))
    log = {"log": True} if "log" in kind else {}
    return {"type": "float", "low": low, "high": high, **log}


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")


def _steps(low: float, high: float, q: float) -> dict[str, Any]:
    """Multiples of q between two bounds: ints if q is a whole number."""
    first, last = math.ceil(low / q - 1e-9), math.floor(high / q + 1e-9)
    if float(q).is_integer():
        return {"type": "int", "low": int(first * q), "high": int(last * q), "step": int(q)}
    return {"type": "float", "low": _rounded(first * q), "high": _rounded(last * q), "step": q}


def _as_word(text: str) -> str:
    """A word of a command as its own: without placeholders, in quotes where a shell needs them."""
    return shlex.quote(text.replace("{", "{{").replace("}", "}}"))
