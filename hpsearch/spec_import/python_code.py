"""Values in Python code, as far as they are written there: literals, arithmetic on them, and names
that stand for them. Nothing is run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from hpsearch.spec_import.draft import FORWARD, StudyDraft

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_KINDS: dict[str, Callable[..., Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "list": list,
    "tuple": list,
    "sorted": sorted,
}
LARGEST_BASE = 1000
"""The largest whole number that powers are worked out of exactly."""
LARGEST_POWER = 1000
"""The largest exponent that is worked out."""


class Unknown(Exception):
    """A value that the code alone does not tell."""


class Code:
    """One Python file as a tree.

    Args:
        text: The file.

    Raises:
        SyntaxError: It is not Python.
    """

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self._assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            for name, value in _assignments(node):
                self._assigned.setdefault(name, []).append(value)

    def calls(self) -> Iterator[ast.Call]:
        """All calls, in the order of the file."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return iter(sorted(found, key=lambda call: (call.lineno, call.col_offset)))

    def functions(self) -> list[ast.FunctionDef | ast.ClassDef]:
        """The functions and classes at the top of the file: those that a study file can name."""
        return [node for node in self.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]

    def meant(self, node: ast.expr) -> ast.expr:
        """What a name stands for where it is assigned once; anything else as it is."""
        seen: set[str] = set()
        while isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            values = self._assigned.get(node.id, [])
            if len(values) != 1:
                return node
            node = values[0]
        return node

    def value(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises:
            Unknown: Only running the code would tell; says what it is.
        """
        node = self.meant(node)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [self.value(each) for each in node.elts]
        if isinstance(node, ast.Dict) and None not in node.keys:
            keys = [self.value(key) for key in node.keys if key is not None]
            return dict(zip(keys, map(self.value, node.values), strict=True))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            return self._signed(node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.Call):
            return self._made(node)
        raise Unknown(ast.unparse(node))

    def _signed(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unknown(ast.unparse(node))
        return -value if isinstance(node.op, ast.USub) else value

    def _arithmetic(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if not _is_number(left) or not _is_number(right):
            raise Unknown(ast.unparse(node))
        try:
            if isinstance(node.op, ast.Pow) and abs(right) <= LARGEST_POWER:
                is_small = isinstance(left, int) and abs(left) <= LARGEST_BASE and right >= 0
                return left**right if is_small else float(left) ** right
            return _BINARY[type(node.op)](left, right)
        except (KeyError, ArithmeticError):
            raise Unknown(ast.unparse(node)) from None

    def _made(self, node: ast.Call) -> Any:
        """`float("1e-3")`, `list(range(3))`, `dict(a=1)` and the like."""
        name = called(node)
        if name == "dict" and not node.args:
            return {each.arg: self.value(each.value) for each in node.keywords if each.arg}
        if (name != "range" and name not in _KINDS) or node.keywords:
            raise Unknown(ast.unparse(node))
        values = [self.value(each) for each in node.args]
        if name == "range":
            return _range(values, node)
        make = _KINDS[name]
        try:
            return make(*values)
        except (TypeError, ValueError, ArithmeticError):
            raise Unknown(ast.unparse(node)) from None


def _range(values: list[Any], node: ast.Call) -> list[int]:
    if not all(isinstance(each, int) for each in values) or not 1 <= len(values) <= 3:
        raise Unknown(ast.unparse(node))
    found = range(*values)
    if len(found) > LARGEST_POWER:
        raise Unknown(ast.unparse(node))
    return list(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement gives a value, with it."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    if not isinstance(node, ast.AnnAssign) or node.value is None:
        return
    if isinstance(node.target, ast.Name):
        yield node.target.id, node.value


def called(node: ast.Call) -> str:
    """The last part of the name of what is called: `uniform` of `tune.uniform(0, 1)`."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def argument(node: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """An argument by its name or position; None if it is not given."""
    for each in node.keywords:
        if each.arg == name:
            return each.value
    if position is not None and position < len(node.args):
        return node.args[position]
    return None


def stated(
    draft: StudyDraft, code: Code, call: ast.Call | None, name: str, position: int | None = None
) -> Any:
    """The value of an argument; None, with a remark, if only running the code would tell it.

    Args:
        draft: Takes the remark.
        code: The file.
        call: The call; None if there is none.
        name: The argument.
        position: Where it stands if it is not named.
    """
    node = None if call is None else argument(call, name, position)
    if node is None:
        return None
    try:
        return code.value(node)
    except Unknown as unknown:
        what = f"{name} {FORWARD}: only running the code tells what {unknown} is"
        draft.remark(node.lineno, "study", what)
        return None
