"""A text data set from installed libraries: sentences of docstrings, labelled with their library.

Sources are read as text and parsed with `ast`; no library is imported. The names of all libraries
are removed from every sentence, so that the label must be inferred from content and style. The same
installed versions and the same seed give the same file.

    python examples/demo_data.py demo/sentences.csv
"""

from __future__ import annotations

import ast
import csv
import importlib.util
import itertools
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from hpsearch.errors import DataError

ALIASES: dict[str, tuple[str, ...]] = {
    "torch": ("torch", "pytorch"),
    "transformers": ("transformers", "transformer", "hugging face", "huggingface", "hf"),
    "sklearn": ("sklearn", "scikit-learn", "scikit learn", "scikit"),
    "pandas": ("pandas", "pd"),
    "numpy": ("numpy", "np", "num py"),
    "scipy": ("scipy", "sp"),
    "ray": ("ray", "rllib", "anyscale"),
    "sqlalchemy": ("sqlalchemy", "sql alchemy", "sqla", "sa"),
    "networkx": ("networkx", "nx"),
    "sympy": ("sympy",),
    "plotly": ("plotly", "px"),
    "optuna": ("optuna",),
    "pyarrow": ("pyarrow", "arrow", "pa"),
    "mypy": ("mypy",),
    "narwhals": ("narwhals", "nw"),
    "hypothesis": ("hypothesis",),
    "huggingface_hub": ("huggingface_hub", "huggingface-hub", "hub"),
    "pydantic": ("pydantic",),
    "alembic": ("alembic",),
    "fsspec": ("fsspec",),
    "joblib": ("joblib",),
    "jinja2": ("jinja2", "jinja"),
    "rich": ("rich",),
    "click": ("click",),
    "typer": ("typer",),
}
"""Libraries by import name, in order of preference, each with the names that it is known by."""

MOST_LIBRARIES = 12
FEWEST_LIBRARIES = 8
FEWEST_ROWS = 2_700
LARGEST_SOURCE_BYTES = 200_000  # longer files are generated or contain data, and are slow to parse

# Copies of other projects, and tests, are not the library's own documentation.
SKIPPED_FOLDERS = {
    "tests",
    "test",
    "testing",
    "_vendor",
    "vendored",
    "vendor",
    "thirdparty_files",
    "third_party",
}
SKIPPED_FOLDERS |= {"_testing", "externals", "extern", "__pycache__", "site-packages"}

NAMES = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(re.escape(n) for names in ALIASES.values() for n in names)
    + r")(?:'s)?(?![\w-])",
    re.IGNORECASE,
)
ROLE = re.compile(r":[\w:.+-]+:(?=`)")
LINK_TARGET = re.compile(r"\s*<[^<>]*>(?=`)")
SENTENCE_END = re.compile(r"(?<=[a-z)]\.)\s+(?=[A-Z])")
SENTENCE = re.compile(r"[A-Z][A-Za-z0-9 ,;'\"()%-]*[a-z0-9)]\.")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|Fig|Eq|al|pp|Dr|No)\.$")

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def build(path: Path, rows_per_library: int = 400, seed: int = 0) -> dict[str, int]:
    """Write the data set: a CSV with the columns `text` and `label`, shuffled by `seed`.

    Args:
        path: The file to write; its folder must exist.
        rows_per_library: The most sentences from one library; one with less than half is left out.
        seed: Selects files and sentences if there are more than needed.

    Returns: The number of rows for each label.

    Raises:
        DataError: There are fewer than 8 libraries or 2,700 sentences.
    """
    collected: dict[str, dict[str, str]] = {}
    for library in ALIASES:
        # Some spares, because sentences that also occur in a second library are dropped below.
        found = _collect(library, wanted=rows_per_library + rows_per_library // 10, seed=seed)
        if len(found) >= rows_per_library // 2:
            collected[library] = found
        if len(collected) == MOST_LIBRARIES:
            break
    writers = Counter(key for found in collected.values() for key in found)
    rows = [
        (text, library)
        for library, found in collected.items()
        for text in itertools.islice(
            (t for key, t in found.items() if writers[key] == 1), rows_per_library
        )
    ]
    _check_size(rows)
    random.Random(seed).shuffle(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("text", "label"))
        writer.writerows(rows)
    return dict(Counter(label for _, label in rows))


def sentences(docstring: str) -> Iterator[str]:
    """The plain sentences of a docstring: 6 to 40 words, from a capital to a full stop, no code.

    Lines of equal indentation between blank lines form a paragraph. The marks of roles, links and
    backticks are removed. A sentence with anything but words and plain punctuation is left out.
    """
    lines = (line.rstrip() for line in docstring.expandtabs().splitlines())
    for _, group in itertools.groupby(
        lines, key=lambda line: len(line) - len(line.lstrip()) if line else None
    ):
        paragraph = LINK_TARGET.sub(
            "", ROLE.sub("", " ".join(line.strip() for line in group))
        ).replace("`", "")
        for candidate in SENTENCE_END.split(paragraph):
            sentence = " ".join(
                NAMES.sub(" ", candidate.strip()).replace(" .", ".").replace(" ,", ",").split()
            )
            if (
                6 <= len(sentence.split()) <= 40
                and SENTENCE.fullmatch(sentence)
                and _reads_whole(sentence)
            ):
                yield sentence


def _reads_whole(sentence: str) -> bool:
    """Whether it ends as a sentence, closes its brackets, and contains no library's name."""
    if ABBREVIATION.search(sentence) or sentence.count("(") != sentence.count(")"):
        return False
    lowered = sentence.lower()
    return not any(name in lowered for names in ALIASES.values() for name in names if len(name) > 4)


def _collect(library: str, wanted: int, seed: int) -> dict[str, str]:
    """Up to `wanted` different sentences of a library, by key (without case and digits)."""
    found: dict[str, str] = {}
    for source in _sources(library, seed):
        for sentence in sentences_in(source):
            found.setdefault(_key(sentence), sentence)
            if len(found) == wanted:
                return found
    return found


def _key(sentence: str) -> str:
    return re.sub(r"\d+", "0", sentence.lower())


def _sources(library: str, seed: int) -> list[Path]:
    """The library's Python files, shuffled by `seed`; none if it is not installed."""
    spec = importlib.util.find_spec(library)
    if spec is None or not spec.submodule_search_locations:
        return []
    root = Path(next(iter(spec.submodule_search_locations)))
    files = sorted(
        file
        for file in root.rglob("*.py")
        if not SKIPPED_FOLDERS.intersection(file.relative_to(root).parts)
        and file.stat().st_size <= LARGEST_SOURCE_BYTES
    )
    random.Random(f"{seed}/{library}").shuffle(files)
    return files


def sentences_in(source: Path) -> Iterator[str]:
    """The plain sentences of all docstrings of a Python file."""
    for docstring in _docstrings(source):
        yield from sentences(docstring)


def _docstrings(source: Path) -> Iterator[str]:
    """The docstrings of a module, its classes and functions; none if it does not parse."""
    try:
        tree = ast.parse(source.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in _documented(tree):
        docstring = ast.get_docstring(node)
        if docstring:
            yield docstring


def _documented(node: Documented) -> Iterator[Documented]:
    """The node with its nested classes and functions, without walking through every expression."""
    yield node
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(child)


def _check_size(rows: Iterable[tuple[str, str]]) -> None:
    counts = Counter(label for _, label in rows)
    if len(counts) >= FEWEST_LIBRARIES and counts.total() >= FEWEST_ROWS:
        return
    raise DataError(
        f"the docstrings of {len(counts)} installed libraries contain {counts.total()} sentences "
        f"({', '.join(sorted(counts)) or 'none'}); "
        f"the demo needs {FEWEST_LIBRARIES} libraries and {FEWEST_ROWS}",
        hint="install hpsearch and its dependencies here, with their sources (.py files)",
    )


def main(arguments: list[str]) -> int:
    """Write the file named on the command line (default sentences.csv) and print its labels."""
    path = Path(arguments[0] if arguments else "sentences.csv")
    try:
        counts = build(path)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for label, count in counts.items():
        print(f"{count:6d}  {label}")
    print(f"{sum(counts.values()):6d}  sentences in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
