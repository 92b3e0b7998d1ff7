"""A study file from the configuration of a W&B sweep.

Each part is carried over, named in a remark, or refused: none is dropped or made up.
"""

import math
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from hpsearch.errors import UserError
from hpsearch.plugins.wandb.sweep import (
    REFUSED,
    Constant,
    Hyperband,
    Sweep,
    parameter_of,
    with_numbers,
)
from hpsearch.plugins.wandb.sweep_line import MACROS, WITH_JSON
from hpsearch.study_file.reading import refusal, space_in
from hpsearch.study_file.starters.draft import USUAL_TRIALS, StudyDraft
from hpsearch.study_file.text import text_of
from hpsearch.study_file.types import is_number
from hpsearch.study_file.validation import problems_of, shown
from trials.contract import Problem
from trials.descriptions import yaml_source
from trials.descriptions.command_line import BUDGET, SEED

LENGTHS = ("epochs", "max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "total_epochs")
"""Names of a constant that says how long a program trains."""
USUAL_LENGTH = 30
"""The logs of the objective that are expected of a run where the sweep does not tell."""
SAMPLERS = {"random": "random", "grid": "brute_force"}
"""The sampler of each method; our default for `bayes`."""
WITHOUT_PLACE = ("description", "project", "entity", "controller")
"""Parts that say nothing about the search."""
USUAL_COMMAND = ("${interpreter}", "${program}", "${args}")
"""The command of a sweep that states none. W&B's own begins with ${env}, which changes nothing."""
_MACRO = re.compile(r"\$\{(\w+)\}")
_VARIABLE = re.compile(r"(\$\{envvar:\w+\})")


def is_sweep(source: str) -> bool:
    """True for a YAML file."""
    return Path(source).suffix.lower() in (".yaml", ".yml")


def draft_in(source: str, study: str | None, folder: Path) -> StudyDraft:
    """As `translate`: the folder of the study file does not matter."""
    return translate(source, study)


def translate(source: str, study: str | None) -> StudyDraft:
    """The study file of a sweep, under a name of its own or that of the sweep.

    Raises:
        UserError: The file cannot be read, or is not a sweep.
        SpecError: It is YAML with mistakes, or has parts that a study file cannot have.
    """
    path = Path(source)
    text = text_of(path)
    found = yaml_source.read(text)
    document = found.value if isinstance(found.value, dict) else {}
    if "study" in document:
        raise UserError(f"{path} is a study file already", f"check it with: hpsearch check {path}")
    if not found.problems and not isinstance(document.get("parameters"), dict):
        what = f"{path} has no parameters, as a sweep of W&B has"
        raise UserError(what, "name a sweep of W&B, or a script of Optuna")
    name = study or str(document.get("name") or "sweep")
    draft = StudyDraft(f"{path.name}, a file of W&B", name)
    problems = found.problems or _carry_over(document, draft)
    if problems:
        raise refusal(text, path.name, problems)
    return draft


def _carry_over(document: dict[str, Any], draft: StudyDraft) -> list[Problem]:
    space = _Space(draft)
    space.read(with_numbers(document["parameters"]), "parameters", "", space.config)
    problems = [Problem(key, REFUSED[key]) for key in document if key in REFUSED]
    problems += space.problems
    given = {key: each for key, each in document.items() if key not in REFUSED}
    for key in given.keys() & {"metric", "early_terminate"}:
        given[key] = with_numbers(given[key])
    try:
        sweep = Sweep.model_validate(given)
    except ValidationError as error:
        return [*problems_of(error), *problems]
    words = list(sweep.command or USUAL_COMMAND)
    task: dict[str, Any] = {
        "kind": "command",
        "library": "wandb",
        "run": " ".join(_word(str(word), at, sweep, problems) for at, word in enumerate(words)),
    }
    if space.config:
        task["config"] = space.config
    if sweep.metric.goal is None:
        draft.remarks.append("metric has no goal: minimize, as W&B takes it")
    goal = sweep.metric.goal or "minimize"
    draft.sections = {
        "task": task,
        "space": draft.space,
        "objective": {"metric": sweep.metric.name, "direction": goal},
        "budget": _budget(sweep, space.length, draft),
        "search": _search(sweep, draft),
        # W&B waits for as long as a run takes.
        "resources": {"report_deadline": "1d"},
    }
    unused = [key for key in WITHOUT_PLACE if key in document]
    unused += [f"metric.{key}" for key in sweep.metric.model_fields_set if "impute" in key]
    if unused:
        draft.remarks.append(f"without a place in a study: {', '.join(unused)}")
    return problems


class _Space:
    """The parameters of a sweep: what is searched, in a draft, and the config of all runs."""

    def __init__(self, draft: StudyDraft) -> None:
        self._draft = draft
        self.config: dict[str, Any] = {}
        """The constants, and the mappings that parameters go into."""
        self.length: float | None = None
        """How long a program trains, if a constant says so."""
        self.problems: list[Problem] = []

    def read(self, parts: Any, place: str, before: str, config: dict[str, Any]) -> None:
        """Read the parameters of one level, whose names begin with `before`."""
        if not isinstance(parts, dict) or not parts:
            self.problems.append(Problem(place, "must be a mapping of names to parameters"))
            return
        for key, part in parts.items():
            where = f"{place}.{key}"
            if isinstance(part, dict) and "parameters" in part:
                inner = config[key] = {}
                self.read(part["parameters"], f"{where}.parameters", f"{before}{key}.", inner)
            else:
                self._parameter(f"{before}{key}", part, where, config)

    def _parameter(self, name: str, part: Any, where: str, config: dict[str, Any]) -> None:
        parent, _, key = name.rpartition(".") if config is not self.config else ("", "", name)
        if name == SEED:
            config[key] = f"{{{SEED}}}"
            self._draft.remarks.append("seed is the trial's own, so that a repeat has another")
            return
        problems: list[Problem] = []
        try:
            if not isinstance(part, dict):
                what = "must be a mapping such as {values: [1, 2]} or {min: 0.0, max: 1.0}"
                raise PydanticCustomError("own", f"{what}, not {shown(part)}")
            found = parameter_of(part)
        except ValidationError as error:
            problems = problems_of(error, where)
        except PydanticCustomError as error:
            problems = [Problem(where, error.message())]
        else:
            if isinstance(found, Constant):
                self._constant(key, found.value, config)
                return
            _, wrong = space_in({name: found})
            for each in wrong:
                key = each.where.removeprefix(f"space.{name}").lstrip(".")
                problems.append(Problem(where, f"{key}: {each.what}" if key else each.what))
            self._draft.space[name] = found
            if found.get("step") and "log" in str(part.get("distribution")):
                what = "is drawn evenly among its multiples, and not by their logarithms"
                self._draft.remarks.append(f"{name} {what}")
        first = name.partition(".")[0]
        if not parent and first != name and isinstance(self.config.get(first), dict):
            what = f"has a point in its name, and {first} is a mapping; rename it"
            problems.append(Problem(where, what))
        self.problems += problems

    def _constant(self, key: str, value: Any, config: dict[str, Any]) -> None:
        is_length = config is self.config and key in LENGTHS and is_number(value) and value >= 1
        if is_length and self.length is None:
            self.length = value
            value = f"{{{BUDGET}}}"
            what = f"{key} is how long a trial trains: {value}, the epochs of per_trial"
            self._draft.remarks.append(what)
        config[key] = value


def _word(word: str, at: int, sweep: Sweep, problems: list[Problem]) -> str:
    """A word of a sweep's command as a study file has it: quoted, and its own braces doubled."""
    own = {"env": "/usr/bin/env", "interpreter": "python", "program": _escaped(str(sweep.program))}
    macro = _MACRO.fullmatch(word)
    if macro is None:
        return _escaped(word)
    if macro[1] not in (*own, *MACROS, *WITH_JSON):
        known = ", ".join(f"${{{name}}}" for name in (*own, *MACROS, *WITH_JSON))
        problems.append(Problem(f"command[{at}]", f"{word} is not one of {known}"))
    return own.get(macro[1], word)


def _escaped(word: str) -> str:
    parts = _VARIABLE.split(word)
    parts[::2] = [each.replace("{", "{{").replace("}", "}}") for each in parts[::2]]
    return shlex.quote("".join(parts))


def _budget(sweep: Sweep, length: float | None, draft: StudyDraft) -> dict[str, Any]:
    spaces, _ = space_in(draft.space or None)
    points = math.prod(parameter.size for parameter in spaces.values())
    trials = sweep.run_cap
    if trials is None and sweep.method == "grid" and math.isfinite(points):
        trials = int(points)
    if trials is None:
        trials = USUAL_TRIALS
        draft.remarks.append(f"the sweep has no run_cap: it ends after {trials} trials here")
    budget: dict[str, Any] = {"trials": trials, "per_trial": {"epochs": length}}
    if length is None:
        ends = sweep.early_terminate
        steps = USUAL_LENGTH if ends is None or ends.max_iter is None else ends.max_iter
        budget["per_trial"] = {"steps": steps, "report_every": 1}
        what = f"steps of per_trial are how often a run logs {sweep.metric.name}"
        draft.remarks.append(f"{what}: set it; the end of a run counts in any case")
    if sweep.metric.target is not None:
        budget["target"] = sweep.metric.target
    return budget


def _search(sweep: Sweep, draft: StudyDraft) -> dict[str, Any]:
    if sweep.method is None:
        draft.remarks.append("the sweep has no method: bayes")
    sampler = SAMPLERS.get(sweep.method or "bayes")
    ranges = [each for each in draft.space.values() if each["type"] == "float"]
    if sampler == "brute_force" and any("step" not in each for each in ranges):
        draft.remarks.append("a grid needs choices or steps, and a parameter has a range: random")
        sampler = "random"
    search: dict[str, Any] = {} if sampler is None else {"sampler": sampler}
    ends = sweep.early_terminate
    return {**search, "pruner": "none" if ends is None else _pruner(ends, draft.remarks.append)}


def _pruner(ends: Hyperband, remark: Callable[[str], None]) -> dict[str, Any]:
    """Successive halving that ends trials where W&B's Hyperband does, by logs of the metric."""
    first, eta = ends.first, ends.eta
    if ends.strict:
        remark(f"early_terminate.strict is not carried over: one of {eta} goes on at each bracket")
    what = f"weak trials end at {first}, {first * eta}, {first * eta**2} ... logs of the metric"
    remark(f"{what}, the best 1 in {eta} go on")
    return {"kind": "successive_halving", "min_resource": first, "reduction_factor": eta}
