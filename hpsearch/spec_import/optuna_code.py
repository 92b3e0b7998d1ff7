"""A study file from Python code of Optuna: an objective with its suggestions, and the study that it
is optimized in."""

from __future__ import annotations

import ast
from typing import Any

from hpsearch.spec_import.draft import FORWARD, USUAL_TRIALS, StudyDraft, study_name
from hpsearch.spec_import.optuna_space import Suggestions
from hpsearch.spec_import.python_code import Code, Unknown, argument, called, stated
from hpsearch.study_file.methods import PRUNERS, SAMPLERS
from hpsearch.study_file.types import is_number, is_whole_number

_BY_CLASS = {theirs: ours for ours, theirs in [*SAMPLERS.items(), *PRUNERS.items()]}


def draft(code: Code, stem: str) -> StudyDraft | None:
    """The study of a file; None if nothing in it suggests a value.

    Args:
        code: The file.
        stem: Its name without its ending: the module that a worker imports.
    """
    suggests = any(called(call).startswith("suggest_") for call in code.calls())
    return _Study(code, stem).draft() if suggests else None


class _Study:
    """One file being carried over."""

    def __init__(self, code: Code, stem: str) -> None:
        self._code = code
        self._stem = stem
        self._draft = StudyDraft("Optuna", study_name(stem))
        self._created = self._call("create_study")
        self._optimized = self._call("optimize")

    def draft(self) -> StudyDraft:
        made = self._draft
        name = self._of(self._created, "study_name")
        if isinstance(name, str):
            made.study = study_name(name)
        made.sections["task"] = {
            "kind": f"{self._stem}:{self._objective()}",
            "library": "optuna",
        }
        Suggestions(self._code, made).add()
        made.sections["objective"] = self._objectives()
        made.sections["budget"] = self._budget()
        search = self._search()
        if search:
            made.sections["search"] = search
        return made

    def _call(self, name: str) -> ast.Call | None:
        return next((call for call in self._code.calls() if called(call) == name), None)

    def _of(self, call: ast.Call | None, name: str, position: int | None = None) -> Any:
        """The value of an argument; None if it is not given or not known."""
        return stated(self._draft, self._code, call, name, position)

    def _objective(self) -> str:
        """The name of the function that is optimized, or that suggests values."""
        node = None if self._optimized is None else argument(self._optimized, "func", 0)
        functions = {each.name: each for each in self._code.functions()}
        if isinstance(node, ast.Name) and node.id in functions:
            return node.id
        if node is not None:
            shown = ast.unparse(node).partition("\n")[0]
            what = f"{shown} is not a function at the top of this file: give it a name there"
            self._draft.remark(node.lineno, "task", what)
        suggesting = [name for name, each in functions.items() if _suggests(each)]
        if "objective" in suggesting or not suggesting:
            return "objective"
        return suggesting[-1]

    def _objectives(self) -> Any:
        directions = self._of(self._created, "directions")
        if isinstance(directions, list) and len(directions) > 1:
            return [
                {"metric": f"value_{i}", "direction": self._direction(each)}
                for i, each in enumerate(directions)
            ]
        stated = self._of(self._created, "direction")
        if isinstance(directions, list) and directions:
            stated = directions[0]
        return {"metric": "value", "direction": self._direction(stated)}

    def _direction(self, stated: Any) -> str:
        return "maximize" if str(stated).lower().endswith("maximize") else "minimize"

    def _budget(self) -> dict[str, Any]:
        budget: dict[str, Any] = {}
        count = self._of(self._optimized, "n_trials", 1)
        seconds = self._of(self._optimized, "timeout", 2)
        if is_whole_number(count) and count > 0:
            budget["trials"] = count
        if is_number(seconds) and seconds > 0:
            budget["wall_clock"] = seconds
        if not budget:
            budget["trials"] = USUAL_TRIALS
            what = f"no n_trials and no timeout are stated: {USUAL_TRIALS} trials are assumed"
            self._draft.remark(None, "budget", what)
        budget["per_trial"] = {"steps": self._steps()}
        return budget

    def _steps(self) -> int:
        """How many reports a trial gives: those of a loop of which the code tells how long it
        is."""
        reports = [call for call in self._code.calls() if called(call) == "report"]
        if not reports:
            return 1
        for loop in ast.walk(self._code.tree):
            if isinstance(loop, ast.For) and any(each in ast.walk(loop) for each in reports):
                try:
                    rounds = self._code.value(loop.iter)
                except Unknown:
                    continue
                if isinstance(rounds, list) and rounds:
                    return len(rounds)
        what = "the code does not tell how often a trial reports: set steps to its last step"
        self._draft.remark(reports[0].lineno, "budget", f"{what}, counted from 1")
        return 1

    def _search(self) -> dict[str, Any]:
        search: dict[str, Any] = {}
        for part in ("sampler", "pruner"):
            node = None if self._created is None else argument(self._created, part)
            if node is None:
                continue
            made = self._code.meant(node)
            name = called(made) if isinstance(made, ast.Call) else ast.unparse(made)
            ours = _BY_CLASS.get(name)
            if ours is None:
                what = f"{part} {name} {FORWARD}: the usual one is used"
                self._draft.remark(node.lineno, "search", what)
                continue
            search[part] = ours
            if isinstance(made, ast.Call) and (made.args or made.keywords):
                what = f"the arguments of {name} are left out: write them beside kind"
                self._draft.remark(made.lineno, "search", what)
        several = self._of(self._created, "directions")
        if isinstance(several, list) and len(several) > 1:
            search.pop("pruner", None)
        return search


def _suggests(node: ast.AST) -> bool:
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    return any(called(call).startswith("suggest_") for call in calls)
