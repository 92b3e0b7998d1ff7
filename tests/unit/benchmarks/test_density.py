"""The size of the house: its figures, and the failure of `make check` past a limit."""

import sys
from pathlib import Path
from typing import Any

import pytest

FUNCTION = '''
def speak():
    """A docstring."""
    first = 1
    second = 2
    third = 3
    fourth = 4
    return call(call(first.name, second), third, fourth)
'''
"""A function of six code lines with three expressions."""


@pytest.fixture
def density(bench: Any) -> Any:
    return bench("density")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two rooms and a module at the top of hpsearch, and a plain room in trials."""
    room = FUNCTION * 10
    files = {
        "README.md": "one two three",
        "CONTRIBUTING.md": "four",
        "docs/page.md": "five six",
        "docs/decisions/0001.md": "seven",
        "hpsearch/__init__.py": "",
        "hpsearch/_version.py": "VERSION = 1\n",
        "hpsearch/errors.py": "class Error(Exception): ...\n",
        "hpsearch/search/__init__.py": '"""Asks."""\n',
        "hpsearch/search/inner/full.py": room.replace("third, fourth", "third.it, fourth.it"),
        "hpsearch/store/__init__.py": room,
        "trials/loop/__init__.py": room,
        "benchmarks/one.py": "a = 1\nb = 2\n",
        "benchmarks/simulate.py": "a = 1\n",
        "benchmarks/simulation/clock.py": "b = 2\nc = 3\nd = 4\n",
        "tests/unit/test_one.py": "c = 3\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_fullest_room_counts_with_all_that_is_in_it_and_every_limit_has_its_figure(
    density, project, capsys
):
    figures = density.standing(project)
    assert figures.keys() == density.LIMITS.keys()
    lines = len(FUNCTION.splitlines()) * 10
    assert figures["lines of product"] == 3 * lines + 3
    assert figures["lines of benchmarks"] == 2
    assert figures["lines of the simulator"] == 4
    assert figures["lines of tests"] == 1
    assert figures["words of documentation"] == 7
    assert figures["names in hpsearch/"] == 3, "errors, search and store"
    assert figures["names in trials/"] == 1
    assert "hpsearch/search" in capsys.readouterr().out
    assert figures["expressions a line, fullest room"] == round(5 / 6, 2)


@pytest.mark.parametrize("lowered", [None, "lines of tests", "words of documentation"])
def test_the_check_fails_past_a_limit_and_names_it(density, project, monkeypatch, lowered):
    limits = {what: density.Limit(1e9, 0) for what in density.LIMITS}
    if lowered is not None:
        limits[lowered] = density.Limit(0, 0)
    monkeypatch.setattr(density, "LIMITS", limits)
    monkeypatch.setattr(density, "ROOT", project)
    monkeypatch.setattr(sys, "argv", ["density.py"])
    if lowered is None:
        density.main()
        return
    with pytest.raises(SystemExit, match=f"past the limit: {lowered};"):
        density.main()


def test_no_limit_is_below_its_aim(density):
    assert all(limit.most >= limit.aim for limit in density.LIMITS.values())
