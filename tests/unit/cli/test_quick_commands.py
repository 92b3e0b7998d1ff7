"""Commands that print a table import what they use: most of their time is spent on imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {
    *("alembic", "botorch", "numpy", "optuna", "pandas", "plotly", "psycopg", "pyarrow"),
    *("ray", "scipy", "sklearn", "starlette", "torch", "transformers"),
}
"""Packages that take longer to import than a table takes to read and print."""

PROGRAM = """
import sys
from hpsearch.cli.main import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(*sys.modules, file=sys.stderr)
"""


def imported_by(url: str, *arguments: str) -> set[str]:
    """The packages that a command has imported when it ends."""
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments, "--storage", url]
        if url
        else [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout
    return {name.partition(".")[0] for name in said.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_the_program_says_of_itself_needs_no_database(option: str) -> None:
    assert not imported_by("", option) & (SLOW | {"sqlalchemy"})


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    "command",
    [
        ("ls",),
        ("status", "flowers"),
        ("best", "flowers", "--top", "3"),  # its best trial was repeated
        ("show", "flowers", "2"),
        ("trials", "flowers", "--where", "lr < 0.05", "--sort", "value desc"),
    ],
    ids=lambda command: command[0],
)
def test_a_table_needs_no_slow_package(
    command: tuple[str, ...], flowers: str, sqlite_url: str
) -> None:
    assert not imported_by(sqlite_url, *command) & SLOW
