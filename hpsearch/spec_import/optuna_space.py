"""The suggestions of an Optuna objective, as code writes them, as parameters of a study.

A suggestion whose name or range only running the code would tell, or that depends on another one in
a way that a study file cannot say, is left to the objective: it draws it itself.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from hpsearch.spec_import.draft import StudyDraft
from hpsearch.spec_import.python_code import Code, Unknown, argument, called

_OLD = {"suggest_uniform": {}, "suggest_loguniform": {"log": True}, "suggest_discrete_uniform": {}}
_KINDS = ("suggest_float", "suggest_int", "suggest_categorical", *_OLD)
LEFT = "is left to the objective, which draws it itself"

Condition = dict[str, Any]
"""The values that other parameters must have: `when` of a study file."""


@dataclass
class _Found:
    """One suggestion.

    Attributes:
        call: The call.
        when: What must hold; None if a study file cannot say it.
    """

    call: ast.Call
    when: Condition | None


@dataclass
class Suggestions:
    """The suggestions of a file, in its order."""

    code: Code
    draft: StudyDraft
    _names: dict[str, str] = field(default_factory=dict)
    """By variable, the parameter that it holds."""

    def add(self) -> None:
        """Add them to the draft."""
        found: list[_Found] = []
        self._walk(self.code.tree.body, {}, found)
        seen: dict[str, _Found] = {}
        for each in found:
            name = self._name(each.call)
            if name is None:
                what = f"{ast.unparse(each.call)} {LEFT}: its name is made when it runs"
                self.draft.remark(each.call.lineno, "space", what)
            elif name in seen:
                what = f"{name} {LEFT}: it is suggested in several places"
                self.draft.remark(each.call.lineno, "space", what)
                self.draft.space.pop(name, None)
            else:
                seen[name] = each
                self._add(name, each)

    def _name(self, call: ast.Call) -> str | None:
        node = argument(call, "name", 0)
        try:
            value = None if node is None else self.code.value(node)
        except Unknown:
            return None
        return value if isinstance(value, str) else None

    def _add(self, name: str, found: _Found) -> None:
        line = found.call.lineno
        if found.when is None:
            what = f"{name} {LEFT}: it depends on what the objective works out before"
            self.draft.remark(line, "space", what)
            return
        missing = [parent for parent in found.when if parent not in self.draft.space]
        if missing:
            what = f"{name} {LEFT}: it depends on {missing[0]}, which does so too"
            self.draft.remark(line, "space", what)
            return
        try:
            parameter = self._parameter(found.call)
        except Unknown as unknown:
            what = f"{name} {LEFT}: only running the code tells what {unknown} is"
            self.draft.remark(line, "space", what)
            return
        except (KeyError, TypeError, ValueError):
            what = f"{name} {LEFT}: {ast.unparse(found.call)} lacks an argument"
            self.draft.remark(line, "space", what)
            return
        if found.when:
            parameter["when"] = found.when
        if not self.draft.add(name, parameter, line):
            return

    def _parameter(self, call: ast.Call) -> dict[str, Any]:
        kind = called(call)
        if kind == "suggest_categorical":
            node = argument(call, "choices", 1)
            choices = self.code.value(node) if node is not None else None
            if not isinstance(choices, list):
                raise ValueError
            return {"type": "categorical", "choices": choices}
        low, high = self._required(call, "low", 1), self._required(call, "high", 2)
        step_name, position = ("q", 3) if kind == "suggest_discrete_uniform" else ("step", None)
        step, log = self._optional(call, step_name, position), self._optional(call, "log", None)
        if kind == "suggest_int":
            made: dict[str, Any] = {"type": "int", "low": int(low), "high": int(high)}
        else:
            made = {"type": "float", "low": float(low), "high": float(high)}
        if log or _OLD.get(kind):
            made["log"] = True
        elif step is not None:
            made["step"] = step if kind == "suggest_int" else float(step)
        return made

    def _required(self, call: ast.Call, name: str, position: int) -> Any:
        node = argument(call, name, position)
        if node is None:
            raise KeyError(name)
        return self.code.value(node)

    def _optional(self, call: ast.Call, name: str, position: int | None) -> Any:
        node = argument(call, name, position)
        return None if node is None else self.code.value(node)

    # -------------------------------------------------------------------------------- conditions

    def _walk(self, body: list[ast.stmt], when: Condition | None, found: list[_Found]) -> None:
        """Find the suggestions of statements, with what must hold for each."""
        for statement in body:
            if isinstance(statement, ast.If):
                self._calls(statement.test, when, found)
                self._walk(statement.body, self._and(when, statement.test), found)
                self._walk(statement.orelse, self._and_not(when, statement.test), found)
            elif isinstance(statement, ast.FunctionDef):
                self._walk_function(statement, when, found)
            elif isinstance(statement, ast.ClassDef | ast.With | ast.Try):
                self._walk(statement.body, when, found)
                rest = [getattr(statement, part, []) for part in ("orelse", "finalbody")]
                for part in rest:
                    self._walk(part, when, found)
            elif isinstance(statement, ast.For | ast.While):
                self._walk(statement.body, when, found)
            else:
                self._calls(statement, when, found)
                self._remember(statement)

    def _walk_function(
        self, function: ast.FunctionDef, when: Condition | None, found: list[_Found]
    ) -> None:
        """Find the suggestions of a function, whose variables are its own."""
        outside = dict(self._names)
        for given in (*function.args.args, *function.args.kwonlyargs):
            self._names.pop(given.arg, None)
        self._walk(function.body, when, found)
        self._names = outside

    def _calls(self, node: ast.AST, when: Condition | None, found: list[_Found]) -> None:
        calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
        for call in sorted(calls, key=lambda each: (each.lineno, each.col_offset)):
            if called(call) in _KINDS and isinstance(call.func, ast.Attribute):
                in_branch = any(
                    isinstance(each, ast.IfExp | ast.BoolOp | ast.comprehension)
                    and any(inner is call for inner in ast.walk(each))
                    for each in ast.walk(node)
                )
                found.append(_Found(call, None if in_branch else when))

    def _remember(self, statement: ast.stmt) -> None:
        """Which variable holds which parameter."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name):
            is_suggestion = isinstance(value, ast.Call) and called(value) in _KINDS
            name = self._name(value) if is_suggestion and isinstance(value, ast.Call) else None
            if name is not None:
                self._names[target.id] = name
            else:
                self._names.pop(target.id, None)

    def _and(self, when: Condition | None, test: ast.expr) -> Condition | None:
        """A condition with a test that holds; None if a study file cannot say it."""
        found = self._tested(test)
        if when is None or found is None:
            return None
        name, values = found
        possible = when.get(name, values)
        return _with(when, name, [value for value in values if value in possible])

    def _and_not(self, when: Condition | None, test: ast.expr) -> Condition | None:
        """A condition with a test that does not hold: the other choices of the parameter."""
        found = self._tested(test)
        if when is None or found is None:
            return None
        name, values = found
        possible = when.get(name, self._choices(name) or [])
        return _with(when, name, [value for value in possible if value not in values])

    def _tested(self, test: ast.expr) -> tuple[str, list[Any]] | None:
        """The parameter and its values of a test such as `optimizer == "sgd"` or
        `optimizer in ("sgd", "adam")`; None for any other test."""
        if isinstance(test, ast.Name) and test.id in self._names:
            return self._names[test.id], [True]
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None
        left, is_in = test.left, isinstance(test.ops[0], ast.In)
        if not isinstance(left, ast.Name) or left.id not in self._names:
            return None
        if not is_in and not isinstance(test.ops[0], ast.Eq):
            return None
        try:
            value = self.code.value(test.comparators[0])
        except Unknown:
            return None
        values = value if is_in and isinstance(value, list) else [value]
        return self._names[left.id], values

    def _choices(self, name: str) -> list[Any] | None:
        """The choices of a parameter, wherever it is suggested."""
        for call in self.code.calls():
            if called(call) == "suggest_categorical" and self._name(call) == name:
                try:
                    found = self._parameter(call)["choices"]
                except (Unknown, ValueError):
                    return None
                return list(found)
        return None


def _with(when: Condition, name: str, values: list[Any]) -> Condition | None:
    """A condition with one more; None if nothing is left that meets it."""
    return {**when, name: values} if values else None
