"""What the README and the page of commands show is so."""

import re
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from hpsearch.cli.main import app
from hpsearch.store.reading.names import FILTERED
from hpsearch.study_file.reading import parse
from support.files import pages

README = pages.read("README")
COMMANDS = pages.read("commands")


def test_its_study_file_is_one():
    (text,) = pages.texts("README", "yaml")
    spec = parse(text, base=Path("/nowhere"))
    assert spec.study == yaml.safe_load(text)["study"]


@pytest.mark.parametrize("command", sorted(get_command(app).commands))  # type: ignore[attr-defined]
def test_every_command_is_named(command):
    assert f"`{command}" in COMMANDS


@pytest.mark.parametrize("column", [*FILTERED, "violation"])
def test_every_column_that_a_filter_knows_is_named(column):
    assert f"`{column}`" in COMMANDS


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", README):
        assert (pages.ROOT / target).exists(), target
