"""A study file from a script that calls `study.optimize`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna

from hpsearch.adapters.optuna_script import MAIN, searches_in
from hpsearch.bridges.draft import USUAL_TRIALS, StudyDraft
from hpsearch.bridges.optuna.recorded import Recorded, Stated, Tried, recorded
from hpsearch.errors import UserError
from hpsearch.study_file import methods
from hpsearch.study_file.text.text_file import text_of
from hpsearch.words.numbers import duration
from trials.contract import TaskError
from trials.tasks.function.task import file_of

LIMIT_S = 120.0
"""Seconds that the one trial may take."""
REPORTING = (".report(", "Callback", "integration")
"""In a script whose objective may report on the way."""
NO_PLACE = "cannot be carried over"


def words_of(source: str) -> list[str] | None:
    """The path of a script and its arguments; None if a source is none."""
    words = [source] if Path(source).is_file() else shlex.split(source)
    return words if words and Path(words[0]).suffix == ".py" else None


def translate(words: list[str], study: str | None, folder: Path) -> StudyDraft:
    """The study file, in a folder, of what a script searches with these arguments.

    Raises:
        UserError: There is no such script, it fails, or it searches in a way that a study cannot.
    """
    file = Path(words[0])
    text = text_of(file, "script", "name a script that calls study.optimize")
    if "optuna" not in text:
        raise UserError(f"{file} does not use Optuna", "see docs/own-training-code.md")
    kind = _kind(file, folder)
    found, tried = recorded(words, LIMIT_S)
    draft = StudyDraft(f"{file.name}, a script of Optuna", study or found.name or file.stem)
    _Script(found, tried, draft, text).carry_over(kind)
    return draft


def _kind(file: Path, folder: Path) -> str:
    """The `kind` of a script, seen from the folder of its study file."""
    script, home = file.resolve(), folder.resolve()
    parts = script.relative_to(home).with_suffix("").parts if script.is_relative_to(home) else ()
    kind = f"{'.'.join(parts)}:{MAIN}"
    try:
        is_found = bool(parts) and file_of(kind, home).samefile(script)
    except TaskError:
        is_found = False
    if not is_found:
        what = f"workers cannot import {file} from the folder of the study file"
        beside = file.with_name("study.yaml")
        hint = f"write it beside the script, whose name must be its own: hpsearch init {beside}"
        raise UserError(what, hint)
    return kind


class _Script:
    """One script that is carried over into a draft."""

    def __init__(self, found: Recorded, tried: Tried, draft: StudyDraft, text: str) -> None:
        self._found, self._tried, self._draft, self._text = found, tried, draft, text
        self._settings: dict[str, Any] = {}
        self._seed: int | None = None
        self._is_from_zero = min(tried.steps, default=1) == 0

    def _remark(self, what: str) -> None:
        self._draft.remarks.append(what)

    def carry_over(self, kind: str) -> None:
        """Fill the draft."""
        found = self._found
        task: dict[str, Any] = {"kind": kind, "library": "optuna"}
        if found.arguments:
            task["args"] = found.arguments
        self._warn_of_searches()
        search = self._search()
        budget = self._budget()
        self._draft.sections = {
            "seed": self._seed,
            "task": task,
            "settings": self._settings,
            "objective": self._objective(),
            "budget": budget,
            "search": search,
            "enqueue": found.enqueued,
            "resources": {"workers": found.jobs} if found.jobs > 1 else {},
        }
        for each in found.callbacks:
            self._remark(f"the callback {each} is not called: the study is in the database")
        for each in found.lost:
            self._remark(f"not carried over: {each}")

    def _warn_of_searches(self) -> None:
        line = self._found.line
        others = []
        for lines, is_in_loop in searches_in(self._text).items():
            if line is not None and line not in lines:
                others.append(str(lines.start))
            elif is_in_loop:
                self._remark(f"line {line} calls optimize in a loop: this is its first call alone")
        if others:
            more = ", ".join(others)
            self._remark(f"this is the search of line {line}, and not that of line {more}")

    def _objective(self) -> Any:
        directions = self._found.directions
        usual = [f"value_{place}" for place in range(len(directions))]
        names = self._found.metrics or (usual if len(directions) > 1 else ["value"])
        pairs = zip(names, directions, strict=True)
        several = [{"metric": name, "direction": direction} for name, direction in pairs]
        return several if len(several) > 1 else several[0]

    # ---------------------------------------------------------------------------------- the budget

    def _budget(self) -> dict[str, Any]:
        found = self._found
        trials = found.trials if found.most is None else min(found.most, found.trials or found.most)
        budget: dict[str, Any] = {}
        if trials is None and found.timeout is None:
            trials = USUAL_TRIALS
            self._remark(f"the script searches until it is stopped: {trials} trials here")
        if trials is not None:
            budget["trials"] = trials
        if found.timeout is not None:
            budget["wall_clock"] = found.timeout
        budget["per_trial"] = self._length()
        return budget

    def _length(self) -> dict[str, int]:
        """The length of a trial: the steps that its objective reports."""
        tried = self._tried
        if tried.error is not None:
            self._remark(f"the first trial fails: {tried.error}")
        length = max(tried.steps, default=0) + self._is_from_zero
        if tried.seconds is None and (length or any(each in self._text for each in REPORTING)):
            self._remark(
                f"the first trial had not ended after {duration(LIMIT_S)}, at step {length}: write "
                "how many steps a trial reports, such as per_trial: {steps: 100}"
            )
            return {}
        for name, (value, largest) in tried.whole.items():
            if value == length and largest > length > 1:
                length = largest
                self._remark(f"a trial reports as many steps as {name} says, {largest} at most")
        if length:
            self._remark(
                f"a trial is ended at step {length}: raise per_trial where some report more steps"
            )
        return {"steps": max(1, length)}

    # ---------------------------------------------------------------------------------- the search

    def _search(self) -> dict[str, Any]:
        found, tried = self._found, self._tried
        search: dict[str, Any] = {}
        if found.sampler is not None:
            sampler = self._sampler(found.sampler)
            if sampler is not None:
                search["sampler"] = sampler
        if not tried.steps or len(found.directions) > 1:
            return search
        is_in_order = tried.steps == sorted(tried.steps)
        if not tried.may_prune or not is_in_order:
            why = "never asks should_prune" if is_in_order else "reports its steps in no order"
            self._remark(f"the objective {why}: each trial trains in full")
            search["pruner"] = "none"
        elif found.pruner is not None:
            pruner = self._method(found.pruner, methods.PRUNERS)
            if pruner is not None:
                search["pruner"] = pruner
        else:
            self._remark("weak trials pause instead of ending, and the best of them continue")
        return search

    def _sampler(self, stated: Stated) -> Any:
        arguments = stated.arguments
        if stated.name == "GridSampler":
            for name, choices in arguments["search_space"].items():
                self._draft.add(name, {"type": "categorical", "choices": choices})
            points = math.prod(map(len, arguments["search_space"].values()))
            self._found.trials = min(points, self._found.trials or points)
            return "brute_force"
        if stated.name == "PartialFixedSampler":
            self._settings |= arguments["fixed_params"]
            base = arguments["base_sampler"]
            return self._sampler(base) if isinstance(base, Stated) else None
        return self._method(stated, methods.SAMPLERS)

    def _method(self, stated: Stated, known: Mapping[str, str]) -> Any:
        """A sampler or pruner as a study file has it; None with a remark if it cannot."""
        kinds = {long: short for short, long in known.items()}
        kind = kinds.get(stated.name)
        if kind is None or not stated.module.startswith("optuna."):
            self._remark(f"{stated.name} of {stated.module} {NO_PLACE}: the study has its own")
            return None
        module = optuna.samplers if known is methods.SAMPLERS else optuna.pruners
        writable = methods.arguments_of(getattr(module, stated.name)).model_fields
        carried: dict[str, Any] = {}
        for name, value in stated.arguments.items():
            if isinstance(value, Stated):
                value = self._method(value, known)
            if name == "seed":
                self._seed = value
            elif name == "n_warmup_steps" and isinstance(value, int):
                carried[name] = value + self._is_from_zero
            elif name in writable and not isinstance(value, tuple):
                carried[name] = value
            elif name != "constraints_func":  # each trial calls it
                self._remark(f"{name} of {stated.name} {NO_PLACE}")
        return {"kind": kind, **carried} if carried else kind
