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
from hpsearch.study_file.reading import space_in

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
                self._leave(name, seen)
            else:
                seen[name] = each
                self._add(name, each)

    def _leave(self, name: str, seen: dict[str, _Found]) -> None:
        """Take a parameter out of the space again, with those that depend on it."""
        self.draft.space.pop(name, None)
        for other, parameter in list(self.draft.space.items()):
            if name in parameter.get("when", {}):
                what = f"{other} {LEFT}: it depends on {name}, which does so too"
                self.draft.remark(seen[other].call.lineno, "space", what)
                self._leave(other, seen)

    def _name(self, call: ast.Call) -> str | None:
        node = argument(call, "name", 0)
        try:
            value = None if node is None else self.code.value(node)
        except Unknown:
            return None
        return value if isinstance(value, str) else None

    def _add(self, name: str, found: _Found) -> None:
        """Add a suggestion, or say why it is left to the objective."""
        line = found.call.lineno
        why = self._obstacle(found)
        if why is None:
            try:
                parameter = self._parameter(found.call)
            except Unknown as unknown:
                why = f"only running the code tells what {unknown} is"
            except (KeyError, TypeError, ValueError):
                why = f"{ast.unparse(found.call)} lacks an argument"
        if why is not None:
            self.draft.remark(line, "space", f"{name} {LEFT}: {why}")
            return
        if found.when:
            parameter["when"] = found.when
        self.draft.add(name, parameter, line)

    def _obstacle(self, found: _Found) -> str | None:
        """Why a study file cannot say when a suggestion is made; None if it can."""
        if found.when is None:
            return "it depends on what the objective works out before"
        for parent, values in found.when.items():
            if parent not in self.draft.space:
                return f"it depends on {parent}, which does so too"
            if self._can_never_be(parent, values):
                return "its condition can never hold"
        return None

    def _can_never_be(self, parent: str, values: list[Any]) -> bool:
        """Whether a parameter lacks one of the values that another one asks of it."""
        space, _ = space_in({parent: self.draft.space[parent]})
        return any(space[parent].problem_with(value) is not None for value in values)

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
        """Find the suggestions of an expression, with what must hold for each."""
        if isinstance(node, ast.Call) and called(node) in _KINDS:
            found.append(_Found(node, when))
        if isinstance(node, ast.IfExp):
            self._calls(node.test, when, found)
            self._calls(node.body, self._and(when, node.test), found)
            self._calls(node.orelse, self._and_not(when, node.test), found)
            return
        is_uncertain = isinstance(node, ast.BoolOp | ast.Lambda | ast.Match)
        for child in ast.iter_child_nodes(node):
            self._calls(child, None if is_uncertain else when, found)

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
