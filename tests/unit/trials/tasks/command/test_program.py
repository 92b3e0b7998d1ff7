"""No process of a command outlives its attempt, or its worker."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import wait_until
from support.running.command_runs import first_of, is_gone, reports_of, shell
from trials.tasks.command import run as running

FAMILY = """
def note(): open("processes", "a").write(str(os.getpid()) + "\\n")
def sleeping():
    note()
    while True: signal.pause()
note()
if os.fork() == 0: sleeping()                       # a child
if os.fork() == 0:                                  # one in a session of its own, as of torchrun
    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); sleeping()
if os.fork() == 0:                                  # a daemon: forked twice
    os.setsid()
    if os.fork() == 0: sleeping()
    os._exit(0)
while len(open("processes").read().split()) < 4: time.sleep(0.01)
print(json.dumps({"resource": 1, "a": 1}))
"""


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


def processes_in(folder: Path) -> list[int]:
    found = [int(line) for line in (folder / "processes").read_text().split()]
    assert len(found) == 4
    return found


@LINUX
def test_all_descendants_end_with_the_attempt(start, python, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "GRACE_S", 1.0)
    run = start(python(FAMILY + "while True: signal.pause()\n"))
    first_of(run)
    processes = processes_in(tmp_path)
    assert not any(map(is_gone, processes))
    assert run.close()
    assert all(map(is_gone, processes))


@LINUX
def test_a_program_that_becomes_a_daemon_leaves_nothing(start, python, tmp_path):
    run = start(python(FAMILY))
    reports_of(run)
    assert all(map(is_gone, processes_in(tmp_path)))


WORKER = """
import sys
from pathlib import Path
from trials import tasks
from trials.contract import Budget, Setup, Unit
base = Path(sys.argv[1])
setup = Setup({}, 1, Budget(Unit.EPOCHS, 3.0, (3.0,)), base / "trial")
task = tasks.load({"kind": "command", "run": sys.argv[2]}, base)
for item in task.start(setup, None):
    if item is not None:
        print("reported", flush=True)
"""


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@LINUX
@pytest.mark.parametrize("victims", ["worker", "worker's child", "watcher", "watcher and worker"])
def test_all_descendants_die_with_their_worker(python, tmp_path, victims):
    """Ray kills the children of a worker that it ends."""
    program = python(FAMILY + "while True: signal.pause()\n")
    command = [sys.executable, "-c", WORKER, str(tmp_path), program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"reported\n"
        processes = processes_in(tmp_path)
        watcher = parent_of(processes[0])
        child = parent_of(watcher)
        assert parent_of(child) == worker.pid
        killed = {
            "worker": [worker.pid],
            "worker's child": [child, worker.pid],
            "watcher": [watcher],
            "watcher and worker": [watcher, worker.pid],
        }
        for process in killed[victims]:
            os.kill(process, signal.SIGKILL)
        wait_until(lambda: all(map(is_gone, [*processes, watcher, child])))
        worker.kill()


def test_a_program_below_a_shell_has_time_to_save(start, python):
    slow = python(
        "def end(*_):\n time.sleep(0.3)\n"
        " open(os.path.join(sys.argv[1], 'state'), 'w').write('x')\n"
        " sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print(json.dumps({'resource': 1, 'a': 1}))\nwhile True: signal.pause()\n"
    )
    run = start(shell(f"{slow} {{folder}} | cat"))
    items = iter(run)
    next(item for item in items if item is not None)
    next(items)
    assert (Path(str(run.save())) / "folder" / "state").read_text() == "x"
