"""What CONTRIBUTING.md and the forms for reports point at is there."""

import re
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from hpsearch.cli.main import app

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
EXAMPLES = ("trials/tasks/audio/", "tests/data/schema/N.sql")
"""Paths that are to be made."""

PATHS = sorted(set(re.findall(r"`((?:hpsearch|trials|tests|docs|benchmarks)/[\w./]*)`", GUIDE)))
LINKS = sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)", GUIDE)))


@pytest.mark.parametrize("path", [*(path for path in PATHS if path not in EXAMPLES), *LINKS])
def test_every_path_is_there(path):
    assert (ROOT / path).exists()


def test_every_make_target_is_one():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"make (\w+)(?=`|\s+#)", GUIDE))
    assert named
    assert named <= targets


def test_every_name_that_is_to_be_edited_stands_in_its_module():
    for name, path in re.findall(r"`(\w+)` in\s+`(\w+/[\w/]+\.py)`", GUIDE):
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text()), f"{name} in {path}"


@pytest.mark.parametrize(
    "form", [path for path in FORMS if path.stem != "config"], ids=lambda p: p.stem
)
def test_a_form_has_what_its_fields_need_and_names_commands_that_there_are(form):
    text = form.read_text(encoding="utf-8")
    asked = yaml.safe_load(text)
    assert {"name", "description", "body"} <= asked.keys()
    fields = [field for field in asked["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    commands = set(re.findall(r"hpsearch (\w+) (?:[A-Z]+|check|study\.yaml)\b", text))
    assert commands <= set(get_command(app).commands)  # type: ignore[attr-defined]
