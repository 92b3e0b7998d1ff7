"""The log of what a program prints, and the line in it that says why the program ended."""

import subprocess
import sys

import pytest

from support.running.command_runs import log_of, reports_of, shell
from trials.checkpoints.disk.log_file import EARLIER, MOST_BYTES
from trials.contract import ProgramFailed
from trials.descriptions.report_pattern import visible
from trials.running.exit_codes import exit_text
from trials.tasks.command.output import LastWords, Output

TRACEBACK = "Traceback (most recent call last):\n  File 'a.py', line 1, in <module>\n    f()\n"
CHAINED = (
    "Traceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 'x'\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
)


def cause(text: str) -> str:
    words = LastWords()
    for line in text.encode().split(b"\n"):
        words.take(visible(line))
    return words.cause


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (f"{TRACEBACK}ValueError: bad", "ValueError: bad"),
        (f"{TRACEBACK}ValueError: bad\na note\nanother note", "ValueError: bad"),
        (f"{TRACEBACK}AssertionError\nwandb: Find logs at: ./wandb", "AssertionError"),
        (f"{CHAINED}{TRACEBACK}my.pkg.Broken: bad", "my.pkg.Broken: bad"),
        (f"{TRACEBACK}ValueError: bad\n2026-01-02 10:00:00 ERROR run failed", "ValueError: bad"),
        (f"{TRACEBACK}ValueError: bad\nINFO:root:cleaning up", "ValueError: bad"),
        (f"{TRACEBACK}ValueError: bad\n 50%|#####   | 5/10 [00:01, 5it/s]", "ValueError: bad"),
        (f" 0%| | 0/10 [00:00<?, ?it/s]{TRACEBACK}ValueError: bad", "ValueError: bad"),
        ("\x1b[31mTraceback (most recent call last):\x1b[0m\n  x\n\x1b[1;31mValueError\x1b[0m: bad",
         "ValueError: bad"),
        (f"{TRACEBACK}KeyError: 'a'\n{TRACEBACK}"
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\na.py FAILED",
         "KeyError: 'a'"),
        ("[rank0]: Traceback (most recent call last):\n[rank0]:   File 'a'\n[rank0]: OSError: no",
         "OSError: no"),
        ("╭─ Traceback (most recent call last) ─╮\n│ a.py:1 │\n╰───╯\nValueError: bad",
         "ValueError: bad"),
        (f"{TRACEBACK}ValueError: bad\nException ignored in: <function f>\n"
         f"{TRACEBACK}BrokenPipeError: [Errno 32]", "ValueError: bad"),
        ("  File 'a.py', line 3\n    f(\n     ^\nSyntaxError: '(' was never closed\nbye",
         "SyntaxError: '(' was never closed"),
        ("usage: a.py [-h]\na.py: error: unrecognized arguments: --lr 1",
         "a.py: error: unrecognized arguments: --lr 1"),
        ("terminate called after throwing an instance of 'c10::Error'\n"
         "  what():  CUDA error: device-side assert triggered\nframe #0: c10::Error::Error()\n"
         "a.sh: line 1: 12 Aborted (core dumped) a", "CUDA error: device-side assert triggered"),
        ("epoch 3\na.sh: line 1: 12 Killed a.py\nINFO done", "a.sh: line 1: 12 Killed a.py"),
        ("a.sh: line 2: trian: command not found", "a.sh: line 2: trian: command not found"),
        ("loading\nERROR:root:the data file is missing\nINFO:root:bye",
         "ERROR:root:the data file is missing"),
        ("x is too large", "x is too large"),
        ("a\n2026-01-02 bye", "a"),
        ("2026-01-02 bye", "2026-01-02 bye"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_error_is_found_among_what_is_printed_around_it(printed, said):
    assert cause(printed) == said


def test_pythons_own_groups_and_notes_are_read():
    code = "e = ValueError('bad'); e.add_note('see there'); raise ExceptionGroup('two', [e])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert cause(made.stderr.decode()) == "ValueError: bad"


def test_an_error_that_was_handled_is_not_the_cause_of_a_kill(start):
    lines = TRACEBACK.replace("'", "") + "ValueError: handled\nepoch 4"
    with pytest.raises(ProgramFailed, match="SIGKILL, as where memory runs out: epoch 4"):
        reports_of(start(shell(f'printf %s "{lines}"; kill -9 $$')))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (3, "exit code 3"),
        (127, "exit code 127, as where there is no such program"),
        (137, "exit code 137: SIGKILL, as where memory runs out"),
        (139, "exit code 139: SIGSEGV, a fault in compiled code"),
        (-6, "SIGABRT, as where compiled code finds an error"),
        (255, "exit code 255"),
        (-63, "signal 63"),
    ],
)
def test_exit_codes_and_signals_are_said_in_words(code, said):
    assert exit_text(code) == said


def test_a_log_takes_no_more_than_two_parts(tmp_path):
    output = Output(tmp_path / "logs" / "log")
    line = b"x" * 999 + b"\n"
    for number in range(3 * MOST_BYTES // 1000):
        output.write(str(number).encode() + line)
    output.close()
    files = {path.name: path.stat().st_size for path in (tmp_path / "logs").iterdir()}
    assert files.keys() == {"log", f"log{EARLIER}"}
    assert MOST_BYTES < sum(files.values()) < 2.1 * MOST_BYTES


def test_a_progress_bar_is_told_by_what_it_showed_last(start, tmp_path):
    run = start(shell("printf 'a\\rb\\rthe end\\n'; exit 3"))
    with pytest.raises(ProgramFailed, match="exit code 3: the end"):
        reports_of(run)
    assert "the end" in log_of(tmp_path)
