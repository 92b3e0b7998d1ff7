"""Expressions: from text, through Python's parser, to their parts; errors point at the place.

A name is a word such as ``learning_rate`` or ``eval/f1``; one with blanks is put in backticks.
Every test is true or false, never unknown: an absent value equals nothing and is neither above nor
below anything, so ``x != 3`` is true where a trial has no x, and ``not (x < 3)`` as well.

Python's parser gets operators, brackets and ``_`` in place of each name and value, all at twice
their place in the text. It knows what binds closer; nothing of a text is evaluated as Python.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from trials.descriptions.cells import number_in

MOST_NESTED = 200
"""Levels of an expression. A sum has one for each term."""


class ExpressionError(ValueError):
    """An expression that cannot be read, or that makes no sense: `what` is wrong at character `at`
    of `text`, and perhaps a `hint` at what to do."""

    def __init__(self, what: str, text: str, at: int, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.excerpt = _excerpt(text, at)  # two lines: the expression, and a caret under the place


class Term(NamedTuple):
    """A part of an expression: a test, a sum, or (`leaf`) a name or a value."""

    rule: str
    at: int  # the place of its first character
    written: str  # a leaf as it is written, and the sign of a comparison or a sum
    parts: "tuple[Term, ...]" = ()
    name: str | None = None  # of a leaf: the name, or None if it is a value
    value: float | int | str | bool | None = None

    @property
    def leaves(self) -> "Iterator[Term]":
        if self.rule == "leaf":
            yield self
        for part in self.parts:
            yield from part.leaves


class Visitor:
    """Makes a meaning of the parts of an expression. Its methods are named as their rules, and get
    a part and the meanings of its own parts."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, part: Term) -> Any:
        return getattr(self, part.rule)(part, *map(self.read, part.parts))

    def wrong(self, part: Term, what: str, hint: str | None = None) -> ExpressionError:
        return ExpressionError(what, self.text, part.at, hint)


_END = r"(?![\w./@:-])"
_NAME = rf"`[^`]+`|(?!(?:and|or|not|is|in|null){_END})[^\W\d][\w./@:-]*"
_TEXT = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_NUMBER = rf"[+-]?(?:[0-9]|\.[0-9])[\w.]*(?:(?<=e)[+-][0-9]+)?|[+-]?inf(?:inity)?{_END}"
_LEAF = rf"(?:{_NUMBER}|{_TEXT}|{_NAME})"
_OPERAND = re.compile(rf"\s*(?:(?P<leaf>{_LEAF})|(?P<prefix>\(|[+-]|not{_END}))", re.IGNORECASE)
_OPERATOR = re.compile(
    rf"""\s*(?:(?P<compare><=|>=|<>|!=|==|[=<>]|(?:not\s+)?in{_END}(?=\s*\())
    |(?P<calculate>[-+*/%,])|(?P<join>(?:and|or){_END})|(?P<null>is(?:\s+not)?\s+null{_END})
    |(?P<like>(?:not\s+)?like\s*(?P<pattern>{_TEXT}))|(?P<close>\))|(?P<end>\Z)
    |(?P<between>(?:not\s+)?between{_END}\s*(?P<low>{_LEAF})\s*and{_END}\s*(?P<high>{_LEAF})))""",
    re.IGNORECASE | re.VERBOSE,
)
_KEY = re.compile(rf"\s*(?P<leaf>{_NAME})(?:\s+(asc|(?P<desc>desc)){_END})?\s*", re.IGNORECASE)
_WORD = re.compile(rf"{_LEAF}|\w+|[-+*/%=<>!,()]|\Z", re.IGNORECASE)
_TESTS = ("compare", "null", "like", "between")
_NOTHING = ("null", "nan", "none")
_PYTHON = {"=": "==", "<>": "!=", "is null": "is None", "is not null": "is not None"}
_NEGATED: dict[type, ast.cmpop] = {ast.NotEq: ast.Eq(), ast.NotIn: ast.In(), ast.IsNot: ast.Is()}


def parsed(text: str, most_nested: int = MOST_NESTED) -> Term:
    """An expression. Raises ExpressionError if it cannot be read, or has too many levels."""
    return _Parser(text).test(most_nested)


def keys_of(text: str) -> Iterator[tuple[Term, bool]]:
    """The names of a text such as ``value desc, lr``, and if the largest come first."""
    at = -1
    while at < len(text):
        found = _KEY.match(text, at + 1)
        if found is None:
            raise unexpected(text, at + 1, "a name")
        at = found.end()
        if text[at : at + 1] not in (",", ""):
            raise unexpected(text, at, "',', 'asc', 'desc' or the end")
        yield _leaf(found, "leaf"), found["desc"] is not None


def unexpected(text: str, at: int, wanted: str) -> ExpressionError:
    """The error of a text in which something else is wanted from a character on."""
    at = len(text) - len(text[at:].lstrip())
    found = _WORD.match(text, at)
    if found is None and text[at] in "'\"`":
        return ExpressionError(f"the {text[at]} here is never closed", text, at)
    if found is None:
        hint = "write: and, or" if text[at] in "&|" else None
        return ExpressionError(f"{text[at]!r} means nothing here", text, at, hint)
    word, hint = found[0], None
    if wanted == "a comparison":
        hint = "such as: = true, < 0.1, between 1 and 2, in (1, 2), like 'ad%', is null"
    elif wanted == "a value" and word.lower() in _NOTHING:
        hint = "write: is null, or: is not null"
    elif wanted in ("a name", "a value") and word.isalpha():
        is_name = re.fullmatch(_NAME, word, re.IGNORECASE)
        in_backticks = f"put a parameter of that name in backticks: `{word}`"
        hint = f"put text in quotes: '{word}'" if is_name else in_backticks
    shown = f"'{word}'" if word else "the end"
    return ExpressionError(f"expected {wanted}, found {shown}", text, at, hint)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._leaves: dict[int, Term] = {}  # by their places
        self._python = [" "] * 2 * len(text)

    def test(self, most_nested: int) -> Term:
        self._translate()
        too_deep = ExpressionError("is nested too deep", self._text, 0, "remove parentheses")
        try:
            tree = ast.parse(f"({''.join(self._python)})", mode="eval").body
        except (SyntaxError, RecursionError, MemoryError):
            raise too_deep from None
        level: list[ast.AST] = [tree]
        for _ in range(most_nested):
            level = [child for each in level for child in ast.iter_child_nodes(each)]
        if level:
            raise too_deep
        return self._test(tree)

    def _translate(self) -> None:
        pattern, wanted, has_test = _OPERAND, "a name", False
        at = depth = prefixes = 0
        kind = ""
        while kind != "end" and prefixes <= MOST_NESTED:
            found = pattern.match(self._text, at)
            kind = "" if found is None else found.lastgroup or ""
            word = "" if found is None else " ".join(found[kind].lower().split())
            if found is None or _is_out_of_place(kind, word, wanted, depth):
                raise unexpected(self._text, at, wanted)
            at = found.end()
            self._write(found, kind, word)
            depth += {"(": 1, ")": -1}.get(word, 0)
            prefixes = prefixes + 1 if kind == "prefix" else 0
            has_test = kind in _TESTS or (has_test and kind != "join")
            if kind in ("compare", "calculate", "join") or word in ("+", "-"):
                pattern, wanted = _OPERAND, "a name" if kind == "join" else "a value"
            elif kind != "prefix":
                inside = "')'" if depth else "'and', 'or' or the end"
                pattern, wanted = _OPERATOR, inside if has_test else "a comparison"

    def _write(self, found: re.Match[str], kind: str, word: str) -> None:
        if kind in ("like", "between"):  # `in` of a set, and of a mapping
            word = "not in {" if word.startswith("not ") else "in {"
        if kind != "leaf":
            self._put(2 * found.start(kind), _PYTHON.get(word, word))
        for group, closing in _LEAVES.get(kind, {}).items():
            start, end = found.span(group)
            self._leaves[start] = _leaf(found, group)
            self._put(2 * start, "_" * (2 * (end - start) - 1) + closing)

    def _put(self, place: int, word: str) -> None:
        self._python[place : place + len(word)] = word

    def _test(self, node: ast.expr) -> Term:
        at = _place(node.col_offset)
        match node:
            case ast.BoolOp(joined, parts):
                rule = "any" if isinstance(joined, ast.Or) else "all"
                return Term(rule, at, "", tuple(map(self._test, parts)))
            case ast.UnaryOp(ast.Not(), part):
                return Term("opposite", at, "", (self._test(part),))
            case ast.Compare(first, signs, others):
                pairs = zip([first, *others], signs, others, strict=False)
                tests = tuple(self._compared(*pair) for pair in pairs)
                return tests[0] if len(tests) == 1 else Term("all", at, "", tests)
        raise unexpected(self._text, _place(node.end_col_offset), "a comparison")

    def _compared(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Term:
        at = _place(left.col_offset)
        if type(sign) in _NEGATED:
            return Term("opposite", at, "", (self._compared(left, _NEGATED[type(sign)], right),))
        of = self._sum(left)
        match sign, right:
            case ast.Is(), _:
                return Term("absent", at, "", (of,))
            case ast.In(), ast.Dict([ast.expr() as low], [high]):
                ends = ((">=", low), ("<=", high))
                tests = (Term("ordered", at, sign, (of, self._sum(end))) for sign, end in ends)
                return Term("all", at, "", tuple(tests))
            case ast.In(), ast.Set([pattern]):
                return Term("like", at, "", (of, self._sum(pattern)))
            case ((ast.In() | ast.Eq()), _):
                values = right.elts if isinstance(right, ast.Tuple) else [right]
                return Term("among", at, "", (of, *map(self._sum, values)))
        return Term("ordered", at, _SIGNS[type(sign)], (of, self._sum(right)))

    def _sum(self, node: ast.expr) -> Term:
        at = _place(node.col_offset)
        match node:
            case ast.Name():
                return self._leaves[at]
            case ast.BinOp(left, sign, right):
                return Term("sum", at, _SIGNS[type(sign)], (self._sum(left), self._sum(right)))
            case ast.UnaryOp((ast.UAdd() | ast.USub()) as sign, of):
                return Term("sum", at, _SIGNS[type(sign)], (self._sum(of),))
        raise unexpected(self._text, at, "a value")


# fmt: off
_SIGNS: dict[type, str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.UAdd: "+", ast.USub: "-",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%",
}
# fmt: on
_LEAVES = {"leaf": {"leaf": ""}, "like": {"pattern": "}"}, "between": {"low": ":", "high": "}"}}
"""The groups of leaves, and what stands behind each in Python."""


def _place(offset: int | None) -> int:
    return ((offset or 0) - 1) // 2


def _is_out_of_place(kind: str, word: str, wanted: str, depth: int) -> bool:
    if wanted == "a value":
        return word in ("not", *_NOTHING)
    if kind in ("join", "end"):
        return wanted == "a comparison" or (kind == "end" and depth > 0)
    return word in (")", ",") and not depth


def _leaf(found: re.Match[str], group: str) -> Term:
    written, at = found[group], found.start(group)
    quote, word = written[0], written.lower()
    value: Any
    if quote in "'\"":
        value = written[1:-1].replace(quote * 2, quote)
    elif word in ("true", "false"):
        value = word == "true"
    elif re.fullmatch(_NUMBER, written, re.IGNORECASE) is None:
        return Term("leaf", at, written, name=written.strip("`"))
    else:
        value = number_in(written)
        if value is None:
            raise ExpressionError(f"'{written}' is not a number", found.string, at)
        value = value if -(2**63) <= value < 2**63 else float(value)
    return Term("leaf", at, written, value=value)


def _excerpt(text: str, at: int) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text)
    start = max(0, at - 60)
    end = at + 40
    before = "…" if start else ""
    after = "…" if len(shown) > end else ""
    indent = len(before) + at - start
    return f"    {before}{shown[start:end]}{after}\n    {' ' * indent}^"
