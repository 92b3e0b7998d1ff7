"""docs/trackers.md: its study file is right, its options are those there are, its command runs."""

import json
import re
import sys
from typing import Any

import pytest

from hpsearch.domain.records import StudyRecord, StudyState
from hpsearch.plugins.notify.notices import Event, notifying, recipient_of
from hpsearch.study_file.reading import parse
from hpsearch.study_file.trackers import TRACKERS, NamedTracker
from support.files import pages
from support.running.programs import run_program

ROOT = pages.ROOT
PAGE = pages.read("trackers")


def test_the_study_file_is_right():
    (text,) = pages.texts("trackers", "yaml")
    spec = parse(text, base=ROOT)
    assert [tracker.kind for tracker in spec.track] == ["tensorboard", "mlflow"]


@pytest.mark.parametrize("kind", TRACKERS)
def test_every_option_is_documented(kind):
    options = type(NamedTracker.model_validate({kind: {}}).options).model_fields
    rows = re.search(rf"\| `{kind}` \| `\w+`(.*\n)+?(?=\| `(?!{kind})|\n)", PAGE)
    assert rows
    assert re.findall(r"^\|.*?\| `(\w+)`", rows[0], flags=re.MULTILINE) == list(options)


@pytest.mark.parametrize("kind", TRACKERS)
def test_every_tracker_has_an_extra_of_its_own(kind):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = re.search(rf'^{kind} = \["([\w-]+)>=', project, flags=re.MULTILINE)
    assert extra
    assert extra[1] in TRACKERS[kind].packages


def test_the_document_shown_is_like_those_that_are_sent():
    (text,) = pages.texts("trackers", "json")
    shown: dict[str, Any] = json.loads(text)
    assert shown["event"] in set(Event)
    assert {"event", "study", "text", "best", "trials", "gpu_hours", "seconds_left"} == set(shown)


def test_the_command_shown_takes_a_notice(tmp_path, monkeypatch, caplog):
    (text,) = pages.texts("trackers", "python")
    (tmp_path / "tell.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with notifying("spiral", recipient_of(f"{sys.executable} tell.py --loud")) as notices:
        notices.ended(StudyRecord(1, "spiral", "", state=StudyState.FINISHED, reason="done"))
    assert caplog.records == []
    assert (tmp_path / "notices.txt").read_text() == "hpsearch: study spiral has ended: done\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line", re.findall(r"^hpsearch (.*?)(?: +#.*)?$", PAGE, flags=re.MULTILINE)
)
def test_the_command_lines_shown_are_understood(line):
    """Up to the database, which is not there."""
    program = "from hpsearch.cli.main import main; main()"
    command = f"{sys.executable} -c '{program}' {line} --storage sqlite:////nowhere/study.db"
    done = run_program(command.replace("python tell.py", sys.executable), shell=True)
    refusals = ("there is no study database at", "there is no such study file")
    assert any(words in done.stderr for words in refusals), done.stderr
