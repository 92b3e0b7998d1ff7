"""Processes end with the one that has started them, however that one ends."""

import os
import signal
import subprocess
import sys

import pytest

from support.patience import wait_until
from trials.running.watcher import end_left, marked, watch

GUARDED = """
import os, subprocess, sys, time
from trials.running.watcher import watch

name, _, value = watch("GUARDED", group=False).partition("=")
os.environ[name] = value
away = subprocess.Popen(["sleep", "1000"], start_new_session=True)
inner = "import subprocess; print(subprocess.Popen(['sleep', '1000'], stdout=2).pid, flush=True)"
below = subprocess.run([sys.executable, "-c", inner], stdout=subprocess.PIPE, text=True)
del os.environ[name]
other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(away.pid, below.stdout.strip(), other.pid, flush=True)
sys.stdin.read()
"""


def runs(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:  # noqa: PTH123 - as short as can be
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_marked_processes_end_with_it_and_others_stay(end):
    guarded = subprocess.Popen(
        [sys.executable, "-c", GUARDED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with guarded:
        assert guarded.stdout is not None
        away, below, other = map(int, guarded.stdout.readline().split())
        try:
            assert runs(away)
            assert runs(below)
            if end is not None:
                guarded.send_signal(end)
            else:
                assert guarded.stdin is not None
                guarded.stdin.close()  # the others have its output open
            wait_until(lambda: not runs(away) and not runs(below))
            assert runs(other)
        finally:
            os.kill(other, signal.SIGKILL)


def test_what_has_a_mark_can_be_ended_before():
    mark = watch("GUARDED", group=False)
    name, _, value = mark.partition("=")
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, name: value}) as child:
        wait_until(lambda: list(marked(mark, os.getsid(0))) == [child.pid])
        assert end_left(lambda: marked(mark, os.getsid(0)))
        assert child.wait() == -signal.SIGKILL
    assert not list(marked(mark, os.getsid(0)))


def test_what_cannot_be_ended_is_left_after_a_while():
    with subprocess.Popen(["sleep", "1000"]) as child:
        assert not end_left(lambda: [child.pid], limit_s=0.0)  # it is found again and again
        assert child.wait() == -signal.SIGKILL
