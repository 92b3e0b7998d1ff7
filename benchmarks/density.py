"""How much there is to read and to learn, and how full the lines are, beside the limits.

    python benchmarks/density.py [FOLDER ...] [--json FILE]

`make check` prints this and fails past a limit: lines of the product, of benchmarks, of the
simulator beside them and of tests, words of the documentation, names at the top of both packages,
and how full the lines are in the fullest room. Whoever needs more than a limit allows takes
something else away, or writes the reason into a decision. Where a figure has not come down to its
aim, the limit is today's figure, rounded up, and is lowered with it.

Code is easy to read if each line has one thought. Well-written libraries have 1.1 to 1.5
expressions and 0.12 to 0.24 branches per code line, and 1 to 16 comprehensions in 1,000 lines.
"""

import ast
import collections
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import typer

from hpsearch.cli.main import app
from tables import arguments, show

ROOT = Path(__file__).parents[1]
BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.BoolOp,
    ast.comprehension,
    ast.ExceptHandler,
    ast.match_case,
)
EXPRESSIONS = (ast.Call, ast.Attribute, ast.BinOp, ast.Compare, ast.Subscript)
Function = ast.FunctionDef | ast.AsyncFunctionDef

SHORTEST = 6
"""Functions with fewer code lines are left out of the means: their figures are too extreme."""
WIDEST = 100
MANY_ARGUMENTS = 6
FEWEST = 10
"""A room with fewer functions that count has no density."""


class Limit(NamedTuple):
    """The most that a figure may be, and what it should come to."""

    most: float
    aim: float


LIMITS = {
    "lines of product": Limit(66_750, 50_000),
    "lines of benchmarks": Limit(9_010, 7_000),
    "lines of the simulator": Limit(950, 900),
    "lines of tests": Limit(66_190, 47_000),
    "words of documentation": Limit(47_600, 42_000),
    "names in hpsearch/": Limit(13, 11),
    "names in trials/": Limit(14, 8),
    "expressions a line, fullest room": Limit(2.2, 1.65),
}
"""Documentation is README.md, CONTRIBUTING.md and the pages of docs/. The simulator, which tests
use too, is benchmarks/simulate.py and benchmarks/simulation/; all else there is benchmarks."""


@dataclass
class Figures:
    """What is counted in the Python files of one folder."""

    lines: int = 0
    code: int = 0
    wide: int = 0
    comprehensions: int = 0
    many_arguments: int = 0
    branches: list[float] = field(default_factory=list)
    expressions: list[float] = field(default_factory=list)
    files: collections.Counter[Path] = field(default_factory=collections.Counter)

    def add(self, path: Path) -> None:
        """Add the counts of one file."""
        rows = path.read_text(encoding="utf-8").splitlines()
        tree = ast.parse("\n".join(rows))
        self.files[path.parent] += 1
        self.lines += len(rows)
        self.code += _code_in(tree, rows)
        self.wide += sum(len(row) > WIDEST for row in rows)
        self.comprehensions += _count(tree, ast.comprehension)
        for function in _functions(tree):
            self._add_function(function, rows)

    def _add_function(self, function: Function, rows: list[str]) -> None:
        self.many_arguments += _arguments(function) >= MANY_ARGUMENTS
        size = _code_lines(function, rows)
        if size >= SHORTEST:
            self.branches.append(_count(function, BRANCHES) / size)
            self.expressions.append(_count(function, EXPRESSIONS) / size)

    def row(self, folder: str) -> dict[str, Any]:
        """The figures by name. Branches and expressions are per code line."""
        return {
            "folder": folder,
            "lines": self.lines,
            "code": self.code,
            "files": sum(self.files.values()),
            "branches": round(statistics.mean(self.branches), 2),
            "branches_p90": round(statistics.quantiles(self.branches, n=10)[-1], 2),
            "expressions": round(statistics.mean(self.expressions), 2),
            "expressions_p90": round(statistics.quantiles(self.expressions, n=10)[-1], 2),
            "comprehensions_per_1000": round(1000 * self.comprehensions / self.lines, 1),
            "percent_over_100_columns": round(100 * self.wide / self.lines, 2),
            "six_arguments": self.many_arguments,
            "fullest_folder": max(self.files.values()),
        }


def measure(folder: Path) -> dict[str, Any]:
    """The figures of all Python files below a folder, without tests."""
    figures = Figures()
    for path in sorted(folder.rglob("*.py")):
        if "test" not in path.relative_to(folder).as_posix():
            figures.add(path)
    return figures.row(folder.name)


def learned() -> str:
    """A sentence on how many commands and options the command line has."""
    commands = list(_commands(typer.main.get_command(app)))
    options = [each for command in commands for each in command.params if _is_option(each)]
    return f"hpsearch has {len(commands)} commands with {len(options)} options."


def standing(root: Path) -> dict[str, float]:
    """Today's figure for each limit, of the project in a folder."""
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    packages = [root / "hpsearch", root / "trials"]
    rooms = [room for package in packages for room in _names(package)]
    fullest = max(rooms, key=_expressions)
    benchmarks = root / "benchmarks"
    simulator = _lines(benchmarks / "simulation") + _lines_of(benchmarks.glob("simulate.py"))
    print(f"The fullest room is {fullest.relative_to(root)}.")
    return {
        "lines of product": sum(_lines(package) for package in packages),
        "lines of benchmarks": _lines(benchmarks) - simulator,
        "lines of the simulator": simulator,
        "lines of tests": _lines(root / "tests"),
        "words of documentation": sum(len(each.read_text("utf-8").split()) for each in pages),
        "names in hpsearch/": len(_names(packages[0])),
        "names in trials/": len(_names(packages[1])),
        "expressions a line, fullest room": round(_expressions(fullest), 2),
    }


def beside_limits(figures: dict[str, float]) -> list[dict[str, Any]]:
    """A row for each limit; one that is exceeded says so."""
    rows = []
    for what, limit in LIMITS.items():
        row = {"what": what, "today": figures[what], "limit": limit.most, "aim": limit.aim}
        is_over = figures[what] > limit.most
        rows.append({**row, "": "TOO MUCH" if is_over else ""})
    return rows


def _names(package: Path) -> list[Path]:
    """The rooms of a package: its folders and modules that do not begin with an underscore."""
    inside = [each.parent for each in package.glob("*/__init__.py")]
    return sorted([*inside, *(each for each in package.glob("*.py") if each.name[0] != "_")])


def _lines(folder: Path) -> int:
    """The lines of all Python files below a folder."""
    return _lines_of(folder.rglob("*.py"))


def _lines_of(files: Iterable[Path]) -> int:
    return sum(len(each.read_text("utf-8").splitlines()) for each in files)


def _expressions(room: Path) -> float:
    """The expressions a code line of a room, a mean over its functions."""
    figures = Figures()
    for path in [room] if room.is_file() else room.rglob("*.py"):
        figures.add(path)
    if len(figures.expressions) < FEWEST:
        return 0.0
    return statistics.mean(figures.expressions)


def _commands(command: Any) -> Iterator[Any]:
    """The commands of a group and of the groups in it; a command is its own."""
    if not hasattr(command, "commands"):
        yield command
        return
    for each in command.commands.values():
        yield from _commands(each)


def _is_option(parameter: Any) -> bool:
    return parameter.param_type_name == "option" and parameter.name != "help"


def _code_in(tree: ast.AST, rows: list[str]) -> int:
    """How many rows are neither blank, nor a comment, nor part of a docstring."""
    strings = {
        row
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for row in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if isinstance(node.value.value, str)
    }
    stripped = (row.strip() for i, row in enumerate(rows, 1) if i not in strings)
    return sum(bool(row) and not row.startswith("#") for row in stripped)


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _count(tree: ast.AST, kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> int:
    return sum(isinstance(node, kinds) for node in ast.walk(tree))


def _arguments(function: Function) -> int:
    """How many arguments a function takes, without `self` and `cls`."""
    names = [each.arg for each in function.args.args + function.args.kwonlyargs]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _code_lines(function: Function, rows: list[str]) -> int:
    """How many lines of a function are code, without docstring, comments and blank lines."""
    body = [row.strip() for row in rows[function.lineno - 1 : function.end_lineno]]
    code = [row for row in body if row and not row.startswith("#")]
    docstring = ast.get_docstring(function, clean=False)
    return len(code) - (len(docstring.splitlines()) if docstring else 0)


def main() -> None:
    """Print all figures.

    Raises:
        SystemExit: One is past its limit.
    """
    given = arguments(__doc__, {}, "folders")
    folders: Iterable[Path] = map(Path, given.folders or [ROOT / "hpsearch", ROOT / "trials"])
    show("How full the lines are", [measure(folder) for folder in folders], given.json)
    print(learned())
    rows = beside_limits(standing(ROOT))
    show("\nLimits", rows, None)
    over = [row["what"] for row in rows if row[""]]
    if over:
        raise SystemExit(f"past the limit: {', '.join(over)}; see benchmarks/density.py")


if __name__ == "__main__":
    main()
