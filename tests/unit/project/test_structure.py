"""The house is kept: rooms of a size one can see, names that mean one thing, a true picture."""

import ast
import collections
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("hpsearch", "trials")
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
FULLEST = 13
"""Twelve modules and the `__init__`."""


@pytest.fixture(scope="module")
def imports() -> ModuleType:
    """The command that draws the rooms."""
    spec = importlib.util.spec_from_file_location("imports", ROOT / "benchmarks" / "imports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["imports"] = module
    spec.loader.exec_module(module)
    return module


def test_no_folder_holds_more_files_than_one_sees_at_once():
    files = collections.Counter(path.parent for path in FILES)
    assert {folder: number for folder, number in files.items() if number > FULLEST} == {}


def test_each_room_says_what_it_is_for():
    rooms = [path for path in FILES if path.name == "__init__.py"]
    silent = [path for path in rooms if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert silent == []


def test_each_room_names_its_modules():
    unnamed = {}
    rooms = [path for path in FILES if path.name == "__init__.py"]
    for path in rooms:
        if path.parent.name in PACKAGES:  # users read these; docs/architecture.md has their rooms
            continue
        said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        inside = {each.stem for each in path.parent.glob("*.py") if each.stem[:2] != "__"}
        inside |= {each.parent.name for each in path.parent.glob("*/__init__.py")}
        missing = sorted(name for name in inside if not re.search(rf"\b{name}\b", said))
        if missing:
            unnamed[path.parent.relative_to(ROOT).as_posix()] = missing
    assert unnamed == {}


def test_no_two_public_types_share_a_name():
    places = collections.defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_architecture_page_shows_the_rooms_as_they_are(package, imports):
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    graph = imports.rooms(package, imports.sources(None))
    assert imports.cycles(graph) == []
    assert imports.diagram(graph) in page


@pytest.mark.parametrize("package", PACKAGES)
def test_the_architecture_page_opens_with_all_rooms(package):
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").splitlines()
    opening = "\n".join(page[:50])
    inside = [path for path in (ROOT / package).iterdir() if path.stem[:2] != "__"]
    rooms = {each.name + "/" * each.is_dir() for each in inside if each.name != "py.typed"}
    assert {room for room in rooms if room not in opening} == set()
    assert len(rooms) <= 15
