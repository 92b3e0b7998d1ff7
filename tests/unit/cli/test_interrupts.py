"""Signals are heard from the first line of the program to its last."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, time
from hpsearch.cli.entry import main

{before}
sys.argv = ["hpsearch", "--version"]
main()
"""

IMPORTING = """
class Late:
    def find_spec(self, name, path=None, target=None):
        if name == "hpsearch.cli.main":
            os.kill(os.getpid(), {number})
            time.sleep(1000)

sys.meta_path.insert(0, Late())
"""
"""The signal arrives while the program is imported."""

RUNNING = """
import hpsearch.cli.main as program

def waits(arguments):
    os.kill(os.getpid(), {number})
    time.sleep(1000)

program._run = waits
"""
"""The signal arrives while a command runs."""

ENDING = """
import atexit

def last():
    os.kill(os.getpid(), {number})
    time.sleep(1000)

atexit.register(last)
"""
"""The signal arrives while the interpreter ends."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("moment", [IMPORTING, RUNNING, ENDING])
def test_a_signal_ends_the_program_with_its_code(moment: str, number: int) -> None:
    program = PROGRAM.format(before=moment.format(number=int(number)))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
