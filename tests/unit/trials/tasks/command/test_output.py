"""The log of what a program prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.running.command_runs import Start, log_of, reports_of, shell
from trials.checkpoints.disk.log_file import EARLIER, MOST_BYTES
from trials.contract import ProgramFailed
from trials.tasks.command.output import Output


def test_a_log_takes_no_more_than_two_parts(tmp_path: Path) -> None:
    output = Output(tmp_path / "logs" / "log")
    line = b"x" * 999 + b"\n"
    for number in range(3 * MOST_BYTES // 1000):
        output.write(str(number).encode() + line)
    output.close()
    files = {path.name: path.stat().st_size for path in (tmp_path / "logs").iterdir()}
    assert files.keys() == {"log", f"log{EARLIER}"}
    assert MOST_BYTES < sum(files.values()) < 2.1 * MOST_BYTES


def test_a_progress_bar_is_told_by_what_it_showed_last(start: Start, tmp_path: Path) -> None:
    run = start(shell("printf 'a\\rb\\rthe end\\n'; exit 3"))
    with pytest.raises(ProgramFailed, match="exit code 3: the end"):
        reports_of(run)
    assert "the end" in log_of(tmp_path)
