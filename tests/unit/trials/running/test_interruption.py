"""Signals that ask for an end: which are heard, and when a second one counts."""

import os
import signal
import subprocess
import sys

import pytest

from support.running.programs import run_program
from trials.running import interruption


@pytest.mark.parametrize(
    ("sent", "asked"),
    [
        ([(signal.SIGTERM, 0.0), (signal.SIGTERM, 0.0)], [1]),
        ([(signal.SIGINT, 0.0), (signal.SIGTERM, 0.9)], [1]),
        ([(signal.SIGINT, 0.0), (signal.SIGINT, 1.0)], [1, 2]),
        ([(signal.SIGINT, 0.0), (signal.SIGINT, 0.5), (signal.SIGINT, 5.0)], [1, 2]),
        ([(signal.SIGHUP, 0.0), (signal.SIGHUP, 5.0), (signal.SIGTERM, 6.0)], [1, 2]),
        ([(signal.SIGXCPU, 0.0), (signal.SIGXCPU, 1.0), (signal.SIGXCPU, 2.0)], [1]),
        ([(signal.SIGUSR1, 0.0), (signal.SIGUSR2, 30.0)], [1]),
    ],
)
def test_signals_that_come_together_are_one_and_only_a_person_asks_again(sent, asked):
    now, heard = 0.0, []
    before = [signal.getsignal(number) for number in interruption.ENDING]
    with interruption.heard(lambda number, times: heard.append(times), lambda: now):
        for number, moment in sent:
            now = moment
            signal.raise_signal(number)
    assert heard == asked
    assert [signal.getsignal(number) for number in interruption.ENDING] == before


def test_what_a_library_takes_is_taken_back():
    heard = []
    with interruption.heard(lambda number, times: heard.append(number)):
        program = "import faulthandler"  # a handler that Python does not know of, as Ray's
        exec(program + "; faulthandler.register(15, chain=False)")
        interruption.take_back()
        signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


PROGRAM = """
import os, signal
from hpsearch.cli import interrupts
with interrupts.handled():
    os.kill(os.getpid(), signal.SIGHUP)
print("goes on")
"""


@pytest.mark.parametrize(("before", "code"), [(["nohup"], 0), ([], -signal.SIGINT)])
def test_a_closed_terminal_is_heard_unless_that_is_ignored_from_the_start(before, code):
    done = run_program([*before, sys.executable, "-c", PROGRAM], env=os.environ, cwd="/tmp")
    assert done.returncode == code, done.stderr
    assert ("goes on" in done.stdout) == (code == 0)
    assert ("KeyboardInterrupt" in done.stderr) == (code != 0)


SECOND = """
import signal
from trials.running.interruption import interruption
with interruption() as asked:
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    print(asked(), flush=True)
    import time
    time.sleep(1.1)
    signal.raise_signal(signal.SIGTERM)
print("too late")
"""


def test_a_training_saves_at_one_signal_and_ends_at_a_second_one():
    words = [sys.executable, "-c", SECOND]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("True\n", -signal.SIGTERM)
