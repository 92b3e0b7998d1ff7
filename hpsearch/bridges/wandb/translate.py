"""A study file from the configuration of a W&B sweep."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpsearch.bridges.draft import FORWARD, USUAL_TRIALS, StudyDraft, study_name
from hpsearch.bridges.wandb.distributions import Carried, carried
from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.text import yaml_source
from hpsearch.study_file.types import is_number, is_whole_number
from trials.descriptions.command_line import GIVEN, SEED

LENGTHS = ("epochs", "max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "total_epochs")
"""Names of a constant that says how long a program trains."""
SAMPLERS = {"bayes": None, "random": "random", "grid": "brute_force"}
"""By W&B's method; None for our default."""
_READ = ("program", "command", "method", "metric", "parameters", "early_terminate", "run_cap")
_NEEDLESS = ("name", "description", "project", "entity", "$schema", "controller", "job")
_USUAL_COMMAND = ["${env}", "${interpreter}", "${program}", "${args}"]
_ARGUMENTS = ("${args}", "${args_no_hyphens}", "${args_no_boolean_flags}")
_WORDS = {"${env}": [], "${interpreter}": ["python"], "${args_json_file}": ["{params}"]}


def translate(source: str, study: str | None) -> StudyDraft:
    """The study file of a sweep, under a name of its own or that of the sweep. Raises UserError if
    the file cannot be read, or is not a sweep, and SpecError if it is YAML with mistakes."""
    path = Path(source)
    known = "name a sweep of W&B, or the URL of an Optuna storage"
    text = yaml_source.text_of(path)
    if path.suffix not in (".yaml", ".yml", ".json"):
        raise UserError(f"{path} is not a .yaml file", known)
    found = yaml_source.read(text)
    if found.problems:
        lines = [f"{path.name}:{found.line_of(each.where)}: {each.what}" for each in found.problems]
        raise SpecError(lines)
    if isinstance(found.value, dict) and "parameters" in found.value:
        return _Sweep(found.value, found.lines, path.name, study).draft()
    if isinstance(found.value, dict) and "study" in found.value:
        raise UserError(f"{path} is a study file already", f"check it with: hpsearch check {path}")
    raise UserError(f"{path} has no parameters, as a sweep of W&B has", known)


class _Sweep:
    """One sweep being carried over, with the line of each place in it."""

    def __init__(
        self, document: Mapping[str, Any], lines: Mapping[str, int], file: str, study: str | None
    ) -> None:
        self._document = document
        self._lines = lines
        name = study or str(document.get("name") or "sweep")
        self._draft = StudyDraft(f"{file}, a file of W&B", study_name(name))
        self._settings: dict[str, Any] = {}
        self._length: str | None = None
        self._seeded = False
        metric = document.get("metric")
        self._metric = metric if isinstance(metric, dict) else {}
        stop = document.get("early_terminate")
        self._stop = stop if isinstance(stop, dict) else None

    def draft(self) -> StudyDraft:
        made = self._draft
        self._parameters()
        made.sections["task"] = {"kind": "command", "run": self._command()}
        made.sections["settings"] = self._settings
        made.sections["objective"] = self._objective()
        made.sections["budget"] = self._budget()
        made.sections["search"] = self._search()
        for key in self._document:
            if key not in _READ and key not in _NEEDLESS:
                self._remark(key, "study", f"{key} has no counterpart and is left out")
        metric = made.sections["objective"]["metric"]
        example = f'{{"resource": 1, "{metric}": 0.5}}'
        what = f"beside wandb.log, the program must print a line such as {example} as it trains"
        made.remark(None, "task", what)
        return made

    def _remark(self, place: str | None, section: str, what: str) -> None:
        line = None if place is None else self._lines.get(place)
        self._draft.remark(line, section, what)

    def _parameters(self) -> None:
        found = self._document.get("parameters")
        if not isinstance(found, dict):
            what = "parameters must be a mapping of names to distributions"
            self._remark("parameters", "space", what)
            return
        for name, part in found.items():
            self._parameter(str(name), part)

    def _parameter(self, name: str, part: Any) -> None:
        place = f"parameters.{name}"
        if name == SEED:
            self._seeded = True
            what = "each trial has a seed of its own, {seed}; it is not searched"
            self._remark(place, "task", what)
            return
        obstacle = _obstacle(name, part)
        if obstacle is None and "value" in part:
            self._constant(name, part["value"], place)
            return
        found = Carried(None, obstacle) if obstacle is not None else carried(part)
        if found.parameter is None:
            self._remark(place, "space", f"{name} {FORWARD}: {found.remark}")
        elif self._draft.add(name, found.parameter, self._lines.get(place)) and found.remark:
            self._remark(place, f"space.{name}", found.remark)

    def _constant(self, name: str, value: Any, place: str) -> None:
        if name in LENGTHS and is_number(value) and value > 0 and self._length is None:
            self._length = name
            self._draft.sections["budget"] = {"per_trial": {"epochs": value}}
            self._remark(place, "budget", f"{name} is how long a trial trains: {{budget}}")
        elif value is None or isinstance(value, dict | list):
            what = f"{name} {FORWARD}: a setting is a number, text, true or false"
            self._remark(place, "settings", what)
        else:
            self._settings[name] = value

    def _command(self) -> str:
        command = self._document.get("command") or _USUAL_COMMAND
        if isinstance(command, str):
            command = shlex.split(command)
        if not isinstance(command, list):
            what = "command must be a list of words; the usual one is taken"
            self._remark("command", "task", what)
            command = _USUAL_COMMAND
        words = [each for word in map(str, command) for each in self._words(word)]
        named = [word for word in words if "{" in word]
        if not named and (self._draft.space or self._settings):
            what = "the command does not take the parameters: they are given as a file, {params}"
            self._remark("command", "task", what)
            words.append("{params}")
        return " ".join(words)

    def _words(self, word: str) -> list[str]:
        """The words of a command for one of W&B's."""
        if word in _WORDS:
            return _WORDS[word]
        if word in _ARGUMENTS:
            return self._arguments("" if word == "${args_no_hyphens}" else "--")
        if word == "${program}":
            return [self._program()]
        if word.startswith("${"):
            what = f"{word} {FORWARD}: write into run what it stands for"
            self._remark("command", "task", what)
            return []
        return [_as_word(word)]

    def _arguments(self, dashes: str) -> list[str]:
        """The words for the parameters, each with its placeholder."""
        placeholders = {name: name for name in [*self._draft.space, *self._settings]}
        if self._seeded:
            placeholders[SEED] = SEED
        if self._length is not None:
            placeholders[self._length] = "budget"
        words = [f"{dashes}{name}={{{each}}}" for name, each in placeholders.items()]
        return [word if _is_plain(word) else shlex.quote(word) for word in words]

    def _program(self) -> str:
        program = self._document.get("program")
        if not program:
            self._remark(None, "task", "the sweep names no program; write yours into run")
        return _as_word(str(program or "train.py"))

    def _objective(self) -> dict[str, Any]:
        name, goal = self._metric.get("name"), self._metric.get("goal", "minimize")
        if not name:
            self._remark("metric", "objective", "the sweep names no metric; write yours")
        if goal not in ("minimize", "maximize"):
            self._remark("metric", "objective", f"goal {goal!r} is taken as minimize")
            goal = "minimize"
        return {"metric": str(name or "loss"), "direction": goal}

    def _budget(self) -> dict[str, Any]:
        budget: dict[str, Any] = {"trials": self._trials()}
        budget |= self._draft.sections.get("budget", {})
        most = None if self._stop is None else self._stop.get("max_iter")
        if "per_trial" not in budget and is_whole_number(most) and most > 0:
            budget["per_trial"] = {"steps": most}
            what = "max_iter counts calls of wandb.log; a step here is what the program reports as"
            self._remark("early_terminate.max_iter", "budget", f'{what} "resource"')
        elif "per_trial" not in budget:
            budget["per_trial"] = {"epochs": 1}
            what = "a sweep does not say how long a trial trains; set per_trial"
            self._remark(None, "budget", f"{what}, and write {{budget}} into the command")
        if is_number(self._metric.get("target")):
            budget["target"] = self._metric["target"]
        return budget

    def _trials(self) -> int:
        cap = self._document.get("run_cap")
        if is_whole_number(cap) and cap > 0:
            return int(cap)
        what = f"the sweep has no run_cap: it ends after {USUAL_TRIALS} trials here; raise it"
        self._remark(None, "budget", what)
        return USUAL_TRIALS

    def _search(self) -> dict[str, Any]:
        method = self._document.get("method")
        if method not in SAMPLERS:
            what = f"the method {method!r} {FORWARD}: the usual sampler is used"
            self._remark("method", "search", what)
        sampler = SAMPLERS.get(str(method))
        ranges = [each for each in self._draft.space.values() if each["type"] == "float"]
        if method == "grid" and any("step" not in each for each in ranges):
            what = "a grid needs choices or steps, and a parameter has a range: sampled at random"
            self._remark("method", "search", what)
            sampler = "random"
        search: dict[str, Any] = {} if sampler is None else {"sampler": sampler}
        if self._stop is not None:
            return search | self._pruner(self._stop)
        what = "a sweep without early_terminate trains each trial in full; remove pruner: none"
        self._remark(None, "search", f"{what} to pause weak trials")
        return search | {"pruner": "none"}

    def _pruner(self, stop: Mapping[str, Any]) -> dict[str, Any]:
        place = "early_terminate"
        what = "hyperband stops trials for good; promotion pauses them and continues the best"
        self._remark(place, "search", what)
        if "s" in stop or "strict" in stop:
            what = "s and strict are left out: rungs follow from the budget"
            self._remark(place, "search", what)
        eta = stop.get("eta", 3)
        if is_whole_number(eta) and 2 <= eta <= 1000:
            return {"pruner": {"kind": "promotion", "eta": eta}}
        self._remark(place, "search", f"eta {eta!r} {FORWARD}: a whole number from 2 is needed")
        return {}


def _obstacle(name: str, part: Any) -> str | None:
    """Why a parameter cannot be carried over; None if nothing speaks against it."""
    if not isinstance(part, dict):
        return "it is not a mapping"
    if name in GIVEN or set(name) & set("{}[]:!"):
        return "it cannot be a placeholder of the command; rename it"
    if "parameters" in part:
        what = "W&B hands nested parameters over as one; give each a flag of its own, such as"
        return f"{what} --{name}.part"
    return None


def _is_plain(word: str) -> bool:
    """True if a shell needs no quotes around a word with a placeholder."""
    bare = word.replace("{", "").replace("}", "")
    return shlex.quote(bare) == bare


def _as_word(text: str) -> str:
    """A word of a command as its own: without placeholders, in quotes where a shell needs them."""
    return shlex.quote(text.replace("{", "{{").replace("}", "}}"))
