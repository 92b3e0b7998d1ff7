"""A study file from the configuration of a W&B sweep."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from hpsearch.spec_import.draft import (
    FORWARD,
    USUAL_TRIALS,
    Lines,
    StudyDraft,
    as_word,
    is_placeholder,
    study_name,
    with_placeholder,
)
from hpsearch.spec_import.wandb_distributions import carried
from hpsearch.study_file.types import is_number, is_whole_number
from trials.descriptions.command_line import SEED

LENGTHS = ("epochs", "max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "total_epochs")
"""Names of a constant that says how long a program trains."""
SAMPLERS = {"random": "random", "grid": "brute_force"}
"""For the methods that are not `bayes`, which is what our default sampler does."""
_READ = ("program", "command", "method", "metric", "parameters", "early_terminate", "run_cap")
_NEEDLESS = ("name", "description", "project", "entity", "$schema", "controller", "job")
_USUAL_COMMAND = ["${env}", "${interpreter}", "${program}", "${args}"]


def draft(document: Mapping[str, Any], lines: Lines) -> StudyDraft:
    """The study of a sweep.

    Args:
        document: The sweep, as YAML has it.
        lines: The line of each place in it.
    """
    return _Sweep(document, lines).draft()


class _Sweep:
    """One sweep being carried over."""

    def __init__(self, document: Mapping[str, Any], lines: Lines) -> None:
        self._document = document
        self._lines = lines
        self._draft = StudyDraft("W&B", study_name(str(document.get("name") or "sweep")))
        self._settings: dict[str, Any] = {}
        self._length: str | None = None
        self._seeded = False

    def draft(self) -> StudyDraft:
        made = self._draft
        self._parameters()
        made.sections["task"] = {"kind": "command", "run": self._command()}
        if self._settings:
            made.sections["settings"] = self._settings
        made.sections["objective"] = self._objective()
        made.sections["budget"] = self._budget()
        search = self._search()
        if search:
            made.sections["search"] = search
        for key in self._document:
            if key not in _READ and key not in _NEEDLESS:
                made.remark(self._line(key), "study", f"{key} has no counterpart and is left out")
        metric = made.sections["objective"]["metric"]
        example = f'{{"resource": 1, "{metric}": 0.5}}'
        what = f"beside wandb.log, the program must print a line such as {example} as it trains"
        made.remark(None, "task", what)
        return made

    def _line(self, place: str) -> int | None:
        return self._lines.get(place)

    def _parameters(self) -> None:
        found = self._document.get("parameters")
        if not isinstance(found, dict):
            what = "parameters must be a mapping of names to distributions"
            self._draft.remark(self._line("parameters"), "space", what)
            return
        for name, part in found.items():
            self._parameter(str(name), part)

    def _parameter(self, name: str, part: Any) -> None:
        line = self._line(f"parameters.{name}")
        if not isinstance(part, dict):
            self._draft.remark(line, "space", f"{name} {FORWARD}: it is not a mapping")
            return
        if name == SEED:
            self._seeded = True
            what = "each trial has a seed of its own, {seed}; it is not searched"
            self._draft.remark(line, "task", what)
            return
        if not is_placeholder(name):
            what = f"{name} {FORWARD}: it cannot be a placeholder of the command; rename it"
            self._draft.remark(line, "space", what)
            return
        if "parameters" in part:
            what = f"{name} {FORWARD}: W&B hands nested parameters over as one; give each a flag"
            self._draft.remark(line, "space", f"{what} of its own, such as --{name}.part")
            return
        if "value" in part:
            self._constant(name, part["value"], line)
            return
        found = carried(part)
        if found.parameter is None:
            self._draft.remark(line, "space", f"{name} {FORWARD}: {found.remark}")
            return
        if self._draft.add(name, found.parameter, line) and found.remark:
            self._draft.remark(line, f"space.{name}", found.remark)

    def _constant(self, name: str, value: Any, line: int | None) -> None:
        if name in LENGTHS and is_number(value) and value > 0 and self._length is None:
            self._length = name
            self._draft.sections["budget"] = {"per_trial": {"epochs": value}}
            self._draft.remark(line, "budget", f"{name} is how long a trial trains: {{budget}}")
        elif value is None or isinstance(value, dict | list):
            what = f"{name} {FORWARD}: a setting is a number, text, true or false"
            self._draft.remark(line, "settings", what)
        else:
            self._settings[name] = value

    # ---------------------------------------------------------------------------------- command

    def _arguments(self, form: str) -> list[str]:
        """The words for the parameters, each with its placeholder."""
        dashes = "" if form == "args_no_hyphens" else "--"
        names = [*self._draft.space, *self._settings]
        words = [with_placeholder(f"{dashes}{name}=", name) for name in names]
        if self._seeded:
            words.append(f"{dashes}{SEED}={{{SEED}}}")
        if self._length is not None:
            words.append(f"{dashes}{self._length}={{budget}}")
        return words

    def _command(self) -> str:
        command = self._document.get("command") or _USUAL_COMMAND
        line = self._line("command")
        if isinstance(command, str):
            command = shlex.split(command)
        if not isinstance(command, list):
            self._draft.remark(
                line, "task", "command must be a list of words; the usual one is taken"
            )
            command = _USUAL_COMMAND
        words: list[str] = []
        for word in map(str, command):
            words += self._words(word, line)
        named = [word for word in words if "{" in word]
        if not named and (self._draft.space or self._settings):
            what = "the command does not take the parameters: they are given as a file, {params}"
            self._draft.remark(line, "task", what)
            words.append("{params}")
        return " ".join(words)

    def _words(self, word: str, line: int | None) -> list[str]:
        if word in ("${args}", "${args_no_hyphens}", "${args_no_boolean_flags}"):
            if word == "${args_no_boolean_flags}":
                what = "true and false are handed over as --flag=true and --flag=false"
                self._draft.remark(line, "task", f"args_no_boolean_flags {FORWARD}: {what}")
            return self._arguments(word.strip("${}"))
        if word in ("${args_json_file}", "${args_json}"):
            if word == "${args_json}":
                what = f"args_json {FORWARD}: {{params}} is the name of a file of JSON"
                self._draft.remark(line, "task", what)
            return ["{params}"]
        if word == "${program}":
            return [self._program()]
        if word == "${interpreter}":
            return ["python"]
        if word == "${env}":
            return []
        if word.startswith("${envvar:"):
            what = f"{word} {FORWARD}: write its value, or use shell: true and ${{{{NAME}}}}"
            self._draft.remark(line, "task", what)
            return []
        return [as_word(word)]

    def _program(self) -> str:
        program = self._document.get("program")
        if not program:
            self._draft.remark(None, "task", "the sweep names no program; write yours into run")
            return "train.py"
        return as_word(str(program))

    # ------------------------------------------------------------------- objective, budget, search

    def _objective(self) -> dict[str, Any]:
        metric = self._document.get("metric")
        named = metric if isinstance(metric, dict) else {}
        name, goal = named.get("name"), named.get("goal", "minimize")
        line = self._line("metric")
        if not name:
            self._draft.remark(
                line, "objective", "the sweep names no metric; write what you compare by"
            )
            name = "loss"
        if goal not in ("minimize", "maximize"):
            self._draft.remark(line, "objective", f"goal {goal!r} is taken as minimize")
            goal = "minimize"
        return {"metric": str(name), "direction": goal}

    def _budget(self) -> dict[str, Any]:
        stop = self._document.get("early_terminate")
        most = stop.get("max_iter") if isinstance(stop, dict) else None
        budget: dict[str, Any] = {"trials": self._trials()}
        budget |= self._draft.sections.get("budget", {})
        if "per_trial" not in budget and is_whole_number(most) and most > 0:
            budget["per_trial"] = {"steps": most}
            what = "max_iter counts calls of wandb.log; a step here is what the program reports as"
            line = self._line("early_terminate.max_iter")
            self._draft.remark(line, "budget", f'{what} "resource"')
        elif "per_trial" not in budget:
            budget["per_trial"] = {"epochs": 1}
            what = "a sweep does not say how long a trial trains; set per_trial"
            self._draft.remark(None, "budget", f"{what}, and write {{budget}} into the command")
        metric = self._document.get("metric")
        if isinstance(metric, dict) and is_number(metric.get("target")):
            budget["target"] = metric["target"]
        return budget

    def _trials(self) -> int:
        cap = self._document.get("run_cap")
        if is_whole_number(cap) and cap > 0:
            return cap
        if self._document.get("method") != "grid":
            what = f"the sweep has no run_cap: it ends after {USUAL_TRIALS} trials here"
            self._draft.remark(None, "budget", what)
            return USUAL_TRIALS
        what = f"a grid ends where it is used up, and here after {USUAL_TRIALS} trials; raise it"
        self._draft.remark(self._line("method"), "budget", what)
        return USUAL_TRIALS

    def _search(self) -> dict[str, Any]:
        method = self._document.get("method")
        search: dict[str, Any] = {}
        if method in SAMPLERS:
            search["sampler"] = SAMPLERS[str(method)]
        elif method != "bayes":
            what = f"the method {method!r} {FORWARD}: the usual sampler is used"
            self._draft.remark(self._line("method"), "search", what)
        if method == "grid" and self._has_ranges():
            what = "a grid needs choices or steps, and a parameter has a range: sampled at random"
            self._draft.remark(self._line("method"), "search", what)
            search["sampler"] = "random"
        stop = self._document.get("early_terminate")
        if not isinstance(stop, dict):
            search["pruner"] = "none"
            what = "a sweep without early_terminate trains each trial in full; remove pruner: none"
            self._draft.remark(None, "search", f"{what} to pause weak trials")
            return search
        self._pruner(stop, search)
        return search

    def _has_ranges(self) -> bool:
        ranges = [each for each in self._draft.space.values() if each["type"] == "float"]
        return any("step" not in each for each in ranges)

    def _pruner(self, stop: Mapping[str, Any], search: dict[str, Any]) -> None:
        line = self._line("early_terminate")
        eta = stop.get("eta", 3)
        if is_whole_number(eta) and 2 <= eta <= 1000:
            search["pruner"] = {"kind": "promotion", "eta": eta}
        else:
            self._draft.remark(
                line, "search", f"eta {eta!r} {FORWARD}: a whole number from 2 is needed"
            )
        what = "hyperband stops trials for good; promotion pauses them and continues the best"
        self._draft.remark(line, "search", what)
        if "s" in stop or "strict" in stop:
            self._draft.remark(
                line, "search", "s and strict are left out: rungs follow from the budget"
            )
