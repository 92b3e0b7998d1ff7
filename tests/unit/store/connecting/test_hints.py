"""Commands that messages suggest work as they stand."""

from typing import Any

import pytest
import typer

import hpsearch.cli.main  # its import adds all commands  # noqa: F401
from hpsearch.cli.commands.app import app
from hpsearch.errors import UserError
from hpsearch.store.connecting.hints import (
    DEFAULT_STORAGE,
    OF_A_DATABASE,
    for_database,
    suggesting_for,
)

THERE = "postgresql://me:secret@there/studies"
SHOWN = "--storage 'postgresql://me:***@there/studies'"


def test_the_commands_that_name_a_database_are_those_with_the_option():
    assert set(OF_A_DATABASE) == set(_of_a_database(typer.main.get_command(app), ""))


def _of_a_database(command: Any, name: str) -> list[str]:
    if hasattr(command, "commands"):
        inner = command.commands.items()
        return [each for word, sub in inner for each in _of_a_database(sub, f"{name} {word}")]
    return [name.strip()] if any(each.name == "storage" for each in command.params) else []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("see them: hpsearch ls", f"see them: hpsearch ls {SHOWN}"),
        ("hpsearch resume a.b-c - or not", f"hpsearch resume a.b-c {SHOWN} - or not"),
        ("hpsearch stop a; if it died", f"hpsearch stop a {SHOWN}; if it died"),
        ("hpsearch rm 'a b' --yes.", f"hpsearch rm 'a b' {SHOWN} --yes."),
        ("`hpsearch run STUDY.yaml` makes one", f"`hpsearch run STUDY.yaml {SHOWN}` makes one"),
        (
            "hpsearch db check, and then: hpsearch db upgrade --storage sqlite:///x.db",
            f"hpsearch db check {SHOWN}, and then: hpsearch db upgrade --storage sqlite:///x.db",
        ),
        ("hpsearch init reviews.yaml", "hpsearch init reviews.yaml"),
        ("the package hpsearch lists all", "the package hpsearch lists all"),
    ],
)
def test_each_command_in_a_text_names_the_database(text, named):
    assert for_database(THERE, text) == named


def test_the_database_that_a_command_finds_by_itself_is_not_named(monkeypatch):
    monkeypatch.delenv("HPSEARCH_STORAGE", raising=False)
    assert for_database(DEFAULT_STORAGE, "hpsearch ls") == "hpsearch ls"
    assert for_database(THERE, "hpsearch ls") != "hpsearch ls"
    monkeypatch.setenv("HPSEARCH_STORAGE", THERE)
    assert for_database(THERE, "hpsearch ls") == "hpsearch ls"
    assert "/hpsearch.db" in for_database(DEFAULT_STORAGE, "hpsearch ls")


def test_an_error_out_of_a_block_suggests_commands_for_its_database():
    with (
        pytest.raises(UserError, match=r"hpsearch status young --storage '"),
        suggesting_for(THERE),
    ):
        raise UserError("nothing yet", "see: hpsearch status young")
