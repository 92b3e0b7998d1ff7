"""A study file from the configuration of a W&B sweep, or from a script that begins one.

Each part is carried over, named in a remark, or refused: none is dropped or made up.

Source: "Sweep configuration options" in the documentation of Weights & Biases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpsearch.bridges.draft import USUAL_TRIALS, StudyDraft
from hpsearch.bridges.wandb.distributions import (
    CONSTANT,
    KEYS,
    NotCarriedOver,
    distribution_of,
    number_in_text,
    parameter_of,
)
from hpsearch.bridges.wandb.program import command_of, sweep_of_script
from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.reading import space_in
from hpsearch.study_file.text.text_file import text_of
from hpsearch.study_file.types import is_number, is_whole_number
from trials.contract import Problem
from trials.descriptions import yaml_source
from trials.descriptions.command import WANDB
from trials.descriptions.command_line import BUDGET, SEED

LENGTHS = ("epochs", "max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "total_epochs")
"""Names of a constant that says how long a program trains."""
USUAL_LENGTH = 30
"""The logs of the objective that are expected of a run where the sweep does not tell."""
SAMPLERS = {"bayes": None, "random": "random", "grid": "brute_force"}
"""The sampler of each method; our default for None."""
ETA = 3
OF_W_AND_B = ("description", "project", "entity", "controller")
"""Parts that say nothing about the search."""
LAUNCHED = "is of W&B Launch, which nothing starts here"
REFUSED = {
    "job": f"{LAUNCHED}; name its script as program",
    "image_uri": f"{LAUNCHED}; name its script as program, or start the image by a command",
    "launch": f"{LAUNCHED}; remove it",
    "queue": f"{LAUNCHED}; remove it",
    "resource": f"{LAUNCHED}; remove it",
    "scheduler": f"{LAUNCHED}; remove it, and set resources.workers in the study file",
    "prior_runs": "is on W&B's servers; remove it, and see: hpsearch import --help",
}
KNOWN = (
    *("name", "program", "command", "method", "metric", "parameters", "early_terminate"),
    *("run_cap", *OF_W_AND_B),
)


def translate(source: str, study: str | None) -> StudyDraft:
    """The study file of a sweep, under a name of its own or that of the sweep.

    Raises:
        UserError: The file cannot be read, or is not a sweep.
        SpecError: It is YAML with mistakes, or has parts that a study file cannot have.
    """
    path = Path(source)
    text = text_of(path)
    is_script = path.suffix == ".py"
    found = yaml_source.Source(sweep_of_script(path)) if is_script else yaml_source.read(text)
    document = found.value if isinstance(found.value, dict) else {}
    problems = list(found.problems)
    if "study" in document:
        raise UserError(f"{path} is a study file already", f"check it with: hpsearch check {path}")
    if not problems and not isinstance(document.get("parameters"), dict):
        what = f"{path} has no parameters, as a sweep of W&B has"
        raise UserError(what, "name a sweep of W&B, or the URL of an Optuna storage")
    name = study or str(document.get("name") or "sweep")
    draft = StudyDraft(f"{path.name}, a {'script' if is_script else 'file'} of W&B", name)
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
        self._config: dict[str, Any] = {}
        """The constants of the config, and the mappings that parameters go into."""
        self._length: float | None = None

    def carry_over(self) -> None:
        """Fill the draft."""
        self._look_at_keys()
        self._parameters(self._document["parameters"], "parameters", "", self._config)
        self._refuse_flat_names()
        task: dict[str, Any] = {
            "kind": "command",
            "library": WANDB,
            "run": command_of(self._document, self.problems),
        }
        if self._config:
            task["config"] = self._config
        objective = self._objective()
        search = self._search()
        self._draft.sections = {
            "task": task,
            "objective": objective,
            "budget": self._budget(objective["metric"]),
            "search": search,
            # W&B waits for as long as a run takes.
            "resources": {"report_deadline": "1d"},
        }

    def _remark(self, what: str) -> None:
        self._draft.remarks.append(what)

    def _refuse(self, place: str, what: str) -> None:
        self.problems.append(Problem(place, what))

    def _look_at_keys(self) -> None:
        unused = []
        for key in self._document:
            if key in REFUSED:
                self._refuse(key, f"{key} {REFUSED[key]}")
            elif key not in KNOWN:
                self._refuse(key, f"{key} is not a part of a sweep that is known; remove it")
            elif key in OF_W_AND_B:
                unused.append(key)
        if unused:
            self._remark(f"without a place in a study: {', '.join(unused)}")

    def _parameters(self, parts: Any, place: str, before: str, config: dict[str, Any]) -> None:
        if not isinstance(parts, dict) or (before and not parts):
            self._refuse(place, f"{place} must be a mapping of names to parameters")
            return
        for key, part in parts.items():
            name, where = f"{before}{key}", f"{place}.{key}"
            if not isinstance(part, dict):
                what = "must be a mapping, such as {values: [1, 2]} or {min: 0.0, max: 1.0}"
                self._refuse(where, f"{name} {what}")
                continue
            unknown = sorted(set(part) - {*KEYS, "parameters"})
            if unknown:
                self._refuse(
                    f"{where}.{unknown[0]}", f"{name} has {unknown[0]}, which is not known"
                )
            elif "parameters" in part:
                config[key] = {}
                self._parameters(part["parameters"], f"{where}.parameters", f"{name}.", config[key])
            else:
                self._parameter(name, part, where, config)

    def _parameter(
        self, name: str, part: dict[str, Any], where: str, config: dict[str, Any]
    ) -> None:
        kind = distribution_of(part)
        key = name.rpartition(".")[2] if config is not self._config else name
        if name == SEED:
            config[key] = f"{{{SEED}}}"
            self._remark("seed is the trial's own, so that a repeat has another: {seed}")
            return
        self._remark_on_texts(name, part)
        if kind == CONSTANT:
            if "value" not in part:
                self._refuse(where, f"{name} is constant, and has no value")
                return
            self._constant(key, number_in_text(part["value"]), config)
            return
        try:
            found = parameter_of(part, kind, lambda what: self._remark(f"values of {name} {what}"))
        except NotCarriedOver as why:
            self._refuse(where, f"{name} {why}")
            return
        _, problems = space_in({name: found})
        for problem in problems:
            self._refuse(where, f"{name} {problem.what}")
        self._draft.space[name] = found

    def _remark_on_texts(self, name: str, part: dict[str, Any]) -> None:
        values = [*part.values(), *(part["values"] if isinstance(part.get("values"), list) else ())]
        for value in values:
            number = number_in_text(value)
            if number is not value:
                self._remark(f"{name}: {value} is text to YAML, and is the number {number!r} here")
                return

    def _constant(self, key: str, value: Any, config: dict[str, Any]) -> None:
        is_length = config is self._config and key in LENGTHS and is_number(value) and value >= 1
        if is_length and self._length is None:
            self._length = value
            config[key] = f"{{{BUDGET}}}"
            self._remark(f"{key} is how long a trial trains: {{budget}}, the epochs of per_trial")
        else:
            config[key] = value

    def _refuse_flat_names(self) -> None:
        """Names with points of their own, whose first part is a mapping, too."""
        for name in self._document["parameters"]:
            first = name.partition(".")[0]
            if first != name and isinstance(self._config.get(first), dict):
                what = f"{name} has a point in its name, and {first} is a mapping; rename it"
                self._refuse(f"parameters.{name}", what)

    def _objective(self) -> dict[str, str]:
        metric = self._document.get("metric")
        if not isinstance(metric, dict) or not isinstance(metric.get("name"), str):
            what = "metric is missing: a study compares trials by one that the script logs"
            self._refuse("metric", f"{what}; add metric: {{name: val_loss, goal: minimize}}")
            return {"metric": "", "direction": ""}
        for key in metric:
            if key in ("impute", "impute_while_running"):
                self._remark(
                    f"without a place in a study: metric.{key}; a failed trial has no value"
                )
            elif key not in ("name", "goal", "target"):
                self._refuse(f"metric.{key}", f"metric.{key} is not known; remove it")
        goal = metric.get("goal")
        if goal is None:
            self._remark("metric has no goal: minimize, as W&B takes it")
        elif goal not in ("minimize", "maximize"):
            self._refuse("metric.goal", f"goal must be minimize or maximize, not {goal!r}")
        return {"metric": metric["name"], "direction": goal or "minimize"}

    def _budget(self, metric: str) -> dict[str, Any]:
        budget: dict[str, Any] = {"trials": self._trials()}
        if self._length is not None:
            budget["per_trial"] = {"epochs": self._length}
        else:
            steps = self._most_logs() or USUAL_LENGTH
            budget["per_trial"] = {"steps": steps, "report_every": 1}
            what = f"steps of per_trial are how often a run logs {metric}"
            self._remark(f"{what}: set it; the end of a run counts in any case")
        target = number_in_text((self._document.get("metric") or {}).get("target"))
        if is_number(target):
            budget["target"] = target
        elif target is not None:
            self._refuse("metric.target", f"target must be a number, not {target!r}")
        return budget

    def _trials(self) -> int:
        cap = self._document.get("run_cap")
        if cap is not None:
            if not is_whole_number(cap) or cap < 1:
                self._refuse("run_cap", f"run_cap must be a whole number above 0, not {cap!r}")
            return int(cap) if is_whole_number(cap) else 1
        spaces, _ = space_in(self._draft.space or None)
        points = math.prod(parameter.size for parameter in spaces.values())
        if self._document.get("method") == "grid" and math.isfinite(points):
            return int(points)
        self._remark(f"the sweep has no run_cap: it ends after {USUAL_TRIALS} trials here")
        return USUAL_TRIALS

    def _most_logs(self) -> int | None:
        stated = self._document.get("early_terminate")
        most = stated.get("max_iter") if isinstance(stated, dict) else None
        return most if is_whole_number(most) and most >= 1 else None

    def _search(self) -> dict[str, Any]:
        method = self._document.get("method")
        if method is None:
            self._remark("the sweep has no method: bayes")
        elif method not in SAMPLERS:
            self._refuse("method", f"method must be {', '.join(SAMPLERS)}, not {method!r}")
        sampler = SAMPLERS.get(str(method))
        ranges = [each for each in self._draft.space.values() if each["type"] == "float"]
        if sampler == "brute_force" and any("step" not in each for each in ranges):
            self._remark("a grid needs choices or steps, and a parameter has a range: random")
            sampler = "random"
        search: dict[str, Any] = {} if sampler is None else {"sampler": sampler}
        return {**search, "pruner": self._pruner()}

    def _pruner(self) -> str | dict[str, Any]:
        """Successive halving that ends trials where W&B's Hyperband does, by logs of the metric."""
        stated = self._document.get("early_terminate")
        if stated is None:
            return "none"
        place = "early_terminate"
        if not isinstance(stated, dict) or stated.get("type") != "hyperband":
            self._refuse(place, f"{place} must have the type hyperband; W&B has no other")
            return "none"
        numbers = {key: number_in_text(value) for key, value in stated.items()}
        del numbers["type"]
        strict = numbers.pop("strict", False)
        if strict:
            self._remark(
                f"{place}.strict is not carried over: one of {ETA} goes on at each bracket"
            )
        for key, value in numbers.items():
            if key not in ("min_iter", "max_iter", "s", "eta"):
                self._refuse(f"{place}.{key}", f"{place}.{key} is not known; remove it")
                return "none"
            if not is_whole_number(value) or value < 1 + (key == "eta"):
                least = "a whole number above 1" if key == "eta" else "a whole number above 0"
                self._refuse(f"{place}.{key}", f"{place}.{key} must be {least}, not {value!r}")
                return "none"
        if "min_iter" not in numbers and "max_iter" not in numbers:
            self._refuse(place, f"{place} has neither min_iter nor max_iter with s; add one")
            return "none"
        first, eta = _first_bracket(numbers)
        what = f"weak trials end at {first}, {first * eta}, {first * eta**2} ... logs of the metric"
        self._remark(f"{what}, the best 1 in {eta} go on")
        return {"kind": "successive_halving", "min_resource": first, "reduction_factor": eta}


def _first_bracket(numbers: Mapping[str, int]) -> tuple[int, int]:
    """The first bracket of Hyperband, and the factor from each to the next."""
    eta = numbers.get("eta", ETA)
    if "min_iter" in numbers:
        return numbers["min_iter"], eta
    most = numbers["max_iter"]
    brackets = numbers.get("s", max(1, int(math.log(most, eta) + 1e-9)) if most > 1 else 1)
    while brackets > 1 and most / eta**brackets < 1:
        brackets -= 1
    return max(1, int(most / eta**brackets)), eta
