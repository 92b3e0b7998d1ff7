"""Programs that the system does not start, and the reason that is given."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from trials import tasks
from trials.contract import ProgramFailed
from trials.tasks.command import starting
from trials.tasks.command.program import Program

OWN = Path(sys.executable).read_bytes()[:64]
OTHER = b"\x7fELF" + OWN[4:18] + (b"\xb7\x00" if OWN[18] != 0xB7 else b"\x3e\x00") + OWN[20:]


def read_all(program: Program) -> None:
    while not program.over:
        program.read(1.0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"#!/bin/sh\r\necho 1\r\n", "end as on Windows, with carriage returns"),
        (b"#!/usr/bin/env python\r\nprint(1)\r\n", "end as on Windows, with carriage returns"),
        (b"#!/usr/bin/env -S pyhton3 -u\n", "asks for pyhton3, which is not on the PATH"),
        (b"#!/opt/nowhere/python\n", "names /opt/nowhere/python, which is not there"),
        (b"#!/etc/passwd\n", "names /etc/passwd, which is not executable"),
        (b"\xef\xbb\xbf#!/bin/sh\n", "begins with a byte order mark"),
        (b"print(1)\n", "has no first line that names its interpreter"),
        (b"", "is empty"),
        (b"MZ\x90\x00\x03", "is a program of another operating system"),
        (OTHER, "is a program for another processor"),
        (None, "is a folder"),
    ],
)
def test_a_program_that_cannot_be_started_says_why(tmp_path, content, reason):
    file = tmp_path / "program"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
        file.chmod(0o755)
    problems = tasks.inspect({"kind": "command", "run": "./program {x}"}, tmp_path)
    if problems:
        (problem,) = problems
        assert problem.where == "task.run"
        assert reason in problem.what
    if content is not None and b"env" in content:
        return  # it is started, and fails
    with (
        closing(Program(["./program"], tmp_path, {"PATH": "/usr/bin:/bin"})) as program,
        pytest.raises(ProgramFailed, match=reason),
    ):
        read_all(program)


def test_a_python_that_is_not_ours_is_named(tmp_path):
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.symlink_to(sys.executable)
    script = tmp_path / "train.py"
    assert starting.other_python(other) == other
    for line in (str(other), "/usr/bin/env python3", "/usr/bin/env -S python3 -u"):
        script.write_text(f"#!{line}\n")
        assert starting.other_python(script, str(other.parent)) == other
    script.write_text(f"#!{sys.executable}\n")
    for ours in (script, sys.executable, "/bin/sh"):
        assert starting.other_python(type(script)(ours)) is None
