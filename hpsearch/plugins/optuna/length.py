"""How many steps the trials of a script report, as far as its source says so."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from trials.running.reported import LENGTHS

_OPERATIONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def stated_length(text: str, known: Mapping[str, Any], first_step: int) -> int | None:
    """The most steps that a script's trials can report, where the first one is `first_step`: of the
    loops around its reports, or else of arguments such as `epochs`; None if it does not say.
    `known` are the values of its module's names, arguments and parameters."""
    tree = ast.parse(text)
    names = {**_constants(tree), **known}
    loops = [_last_step(node, names) for node in ast.walk(tree) if _reports(node)]
    if loops:
        found = [each for each in loops if each is not None]
        is_known = len(found) == len(loops)
        return max(found) + (first_step == 0) if is_known else None
    lengths = [value for name, value in _named(tree, names) if name in LENGTHS]
    return max((each for each in lengths if type(each) is int), default=None)


def _reports(node: ast.AST) -> bool:
    if not isinstance(node, ast.For | ast.While):
        return False
    inner = [each for part in node.body for each in ast.walk(part)]
    if any(_reports(each) for each in inner if isinstance(each, ast.For | ast.While)):
        return False
    calls = [each.func for each in inner if isinstance(each, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr == "report" for call in calls)


def _last_step(loop: ast.AST, names: Mapping[str, Any]) -> int | None:
    if not isinstance(loop, ast.For):
        return None
    for call in ast.walk(loop.iter):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            if call.func.id != "range":
                continue
            numbers = [_value(each, names) for each in call.args]
            if all(type(each) is int for each in numbers):
                steps = range(*numbers)
                return steps[-1] if steps else None
    return None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression; None where it is not known, or calls something."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names.get(node.id)
        case ast.Attribute():  # args.epochs, self.epochs
            return getattr(_value(node.value, names), node.attr, names.get(node.attr))
        case ast.BinOp() if type(node.op) in _OPERATIONS:
            sides = _value(node.left, names), _value(node.right, names)
            with suppress(TypeError, ArithmeticError):
                return _OPERATIONS[type(node.op)](*sides)
    return None


def _constants(tree: ast.AST) -> dict[str, Any]:
    found: dict[str, Any] = {}
    several = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            value = node.value.value if isinstance(node.value, ast.Constant) else None
            several |= {name} & found.keys()
            found[name] = value
    return {name: value for name, value in found.items() if name not in several}


def _named(tree: ast.AST, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values by the names of arguments, of keys, and of options of a command line."""
    yield from names.items()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg, _value(node.value, names)
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), _value(value, names)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            option = str(node.args[0].value).lstrip("-").replace("-", "_")
            defaults = [each.value for each in node.keywords if each.arg == "default"]
            yield from ((option, _value(each, names)) for each in defaults)
