"""Where messages and results go: streams that cannot show everything, whose reader has gone, whose
disk is full."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.cli.output import log_as_notes, note
from hpsearch.cli.streams import guarded
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.views.live import LiveView
from support.running.programs import run_program
from support.studies.small import Bowl, Simulation, spec_with

Save = Callable[..., None]

NAME = "größe → 中 😀"
READING = [["ls"], ["status"], ["best"], ["trials"], ["show", "0"]]
COMMAND = [sys.executable, "-c", "from hpsearch.cli.main import main; main()"]


@pytest.fixture
def letters(save: Save) -> None:
    """A study with letters of all kinds in a parameter's name and value."""
    save("letters", [Trial(0, State.COMPLETE, {NAME: NAME, "x": 0.5}, value=0.5, resource=3.0)])


@pytest.fixture
def environment(sqlite_url: str) -> dict[str, str]:
    return {**os.environ, "HPSEARCH_STORAGE": sqlite_url}


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
@pytest.mark.parametrize("command", READING, ids=lambda words: words[0])
@pytest.mark.usefixtures("letters")
def test_letters_that_an_encoding_lacks_are_escaped(run, command, encoding, tmp_path, monkeypatch):
    out = tmp_path / "out"
    with out.open("w", encoding=encoding) as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        code = run(*command).code
    assert code == 0
    text = out.read_text(encoding=encoding)
    if command[0] in ("best", "trials", "show"):
        assert ("größe" if encoding != "ascii" else r"gr\xf6\xdfe") in text
        assert (NAME if encoding == "utf-8" else r"\u4e2d \U0001f600") in text


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.usefixtures("letters")
def test_all_letters_can_be_read_back(run, form):
    out = run("trials", "--format", form).out
    read = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert NAME in _strings(read)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str):
        yield value


RESULTS = [
    ["best"],
    pytest.param(["trials", "--format", "json"], marks=pytest.mark.thorough),
    pytest.param(["--help"], marks=pytest.mark.thorough),
]


@pytest.mark.parametrize("command", RESULTS, ids=lambda words: words[0])
def test_results_that_no_disk_takes_are_an_error(flowers, environment, command):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*COMMAND, *command], stdout=full, stderr=subprocess.PIPE, env=environment, text=True
        )
    assert ended.returncode == 2
    assert "the results cannot be written: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "form",
    [
        "table",
        pytest.param("json", marks=pytest.mark.thorough),
        pytest.param("csv", marks=pytest.mark.thorough),
    ],
)
def test_a_command_whose_results_nobody_reads_ends_quietly(flowers, environment, form):
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, "trials", flowers, "--format", form]
    ended = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, env=environment, text=True
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_command_whose_messages_nobody_reads_does_its_work(flowers, environment):
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*COMMAND, "trials"], stdout=subprocess.PIPE, stderr=writer, env=environment, text=True
    )
    os.close(writer)
    assert ended.returncode == 0
    assert "adamw" in ended.stdout


@pytest.mark.parametrize("lost", ["reader", "disk"])
def test_a_study_goes_on_when_its_messages_cannot_be_written(lost, monkeypatch):
    if lost == "reader":
        reader, writer = os.pipe()
        os.close(reader)
        stream = os.fdopen(writer, "w")
    else:
        stream = Path("/dev/full").open("w")  # noqa: SIM115 - closed below
    root = logging.getLogger()
    handlers = root.handlers[:]
    root.handlers.clear()
    monkeypatch.setattr(sys, "stderr", stream)
    try:
        with guarded():
            log_as_notes()
            study = Simulation(spec_with(), curves=Bowl(diverges=0.8))
            with LiveView(str) as view:
                while not study.study.finished:
                    study.tick()
                    note("a message " * 1000)
                    logging.getLogger("hpsearch").warning("a warning")
                    view.watch(study.study, study.written[-1], study.executor.now)
                study.study.close(study.executor.now)
                view.watch(study.study, Changes(), study.executor.now)
        stream.close()  # what was held back goes nowhere, and this raises nothing
    finally:
        root.handlers[:] = handlers
    assert study.history.study.state is StudyState.FINISHED


def test_warnings_of_libraries_are_shown_to_those_alone_who_ask_for_them():
    warn = (
        "from hpsearch.cli.streams import guarded\nimport numpy, warnings\n"
        "with guarded():\n    numpy.float64(1e308) * 10\n    warnings.warn('of a library')"
    )
    said = []
    for options in ([], ["-W", "always"]):
        command = [sys.executable, *options, "-c", warn]
        said.append(run_program(command, check=True).stderr)
    assert said[0] == ""
    assert "overflow encountered" in said[1]
    assert "of a library" in said[1]
