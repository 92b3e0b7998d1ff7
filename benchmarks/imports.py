"""Draw the rooms of both packages and their imports, from the code itself.

    python benchmarks/imports.py [--revision REVISION]

Prints a Mermaid diagram for each package. A room is a package or a module at the top of one; an
arrow points to what is imported. Arrows that follow from others (A to C, if A imports B and B
imports C) are left out, so that the diagram shows the layers. `--revision` draws an earlier state
of the repository.
"""

import argparse
import ast
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("hpsearch", "trials")
Graph = dict[str, set[str]]


def sources(revision: str | None) -> dict[str, str]:
    """The source of each module of the working tree or a revision, by dotted name."""
    if revision is None:
        paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
        return {_module(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}
    listed = _git("ls-tree", "-r", "--name-only", revision, *PACKAGES).splitlines()
    names = [name for name in listed if name.endswith(".py")]
    return {_module(Path(name)): _git("show", f"{revision}:{name}") for name in names}


def rooms(package: str, modules: Mapping[str, str]) -> Graph:
    """What each room of a package imports of its other rooms."""
    graph: Graph = {}
    for name, text in modules.items():
        room = _room(package, name)
        if room is None:
            continue
        graph.setdefault(room, set())
        imported = {_room(package, each) for each in _imported(text, modules)}
        graph[room] |= {each for each in imported if each is not None and each != room}
    return graph


def cycles(graph: Graph) -> list[tuple[str, str]]:
    """The pairs of rooms that import each other, directly or indirectly."""
    reached = {room: _reached(graph, room) for room in graph}
    pairs = [(a, b) for a in graph for b in graph if a < b]
    return sorted((a, b) for a, b in pairs if b in reached[a] and a in reached[b])


def diagram(graph: Graph) -> str:
    """A Mermaid diagram with an arrow for each import that does not follow from others."""
    lines = ["```mermaid", "flowchart TD"]
    for room in sorted(graph):
        lines.append(f"    {room}")
    for room in sorted(graph):
        lines.extend(f"    {room} --> {other}" for other in sorted(_direct(graph, room)))
    return "\n".join([*lines, "```"])


def _direct(graph: Graph, room: str) -> set[str]:
    """What a room imports and does not also reach through another of its imports."""
    imported = graph[room]
    indirect: set[str] = set()
    for other in imported:
        reached = _reached(graph, other)
        if room not in reached:
            indirect |= reached - {other}
    return imported - indirect


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        for other in graph.get(todo.pop(), set()) - found:
            found.add(other)
            todo.append(other)
    return found


def _room(package: str, module: str) -> str | None:
    """The room of a module: the first name below the package. None outside both packages."""
    head, *rest = module.split(".")
    if head != package or not rest:
        return None
    return rest[0]


def _imported(text: str, modules: Mapping[str, str]) -> Iterator[str]:
    """The modules that a source text imports, anywhere in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in modules else node.module


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--revision", help="draw this commit instead of the working tree")
    given = parser.parse_args()
    modules = sources(given.revision)
    for package in PACKAGES:
        graph = rooms(package, modules)
        pairs = cycles(graph)
        print(f"{package}: {len(graph)} rooms, {len(pairs)} pairs that import each other")
        for a, b in pairs:
            print(f"  {a} <-> {b}")
        print(diagram(graph))


if __name__ == "__main__":
    main()
