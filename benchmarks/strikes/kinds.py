"""The kinds of disruption: what each one breaks, and repairs again."""

import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from strikes.study import STEPS, Struck
from strikes.world import World, filled, halt, kill, wait_for

Strike = Callable[[World, Struck, random.Random], None]

CONTINUES = f"state = 'running' AND resource < {STEPS}"
"""Trials that have not made their last report: after that one they never look at a checkpoint
again."""

OPPORTUNITY_S = 30.0
"""How long a checkpoint that is worth damaging is waited for."""

ARRIVAL_S = 1.0
"""How long a report may be on its way from a worker that is halted to its row in the database."""


def driver_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to the driver."""
    study.driver.kill()
    study.driver.wait()


def driver_stopped(world: World, study: Struck, draw: random.Random) -> None:
    """SIGSTOP to the driver until another one has taken over; then it must be refused. While it is
    stopped in the middle of a transaction, nobody else can write to a file."""
    zombie = study.driver
    zombie.send_signal(signal.SIGSTOP)
    while world.own_file is not None and _is_locked(world.own_file):
        zombie.send_signal(signal.SIGCONT)
        time.sleep(draw.uniform(0.1, 1.0))
        zombie.send_signal(signal.SIGSTOP)
    try:
        finished = study.state()[0] == "finished"  # nothing left to write: it ends normally
        wait_for("the end of a lease", lambda: study.state()[1] < time.time())
        study.resume()
        study.wait_for_progress()
    finally:
        zombie.send_signal(signal.SIGCONT)
    try:
        code = zombie.wait(timeout=300)
    except subprocess.TimeoutExpired:
        zombie.kill()
        raise AssertionError("a driver whose study was taken over went on") from None
    assert code == (0 if finished else 4), f"a driver whose study was taken over ended with {code}"


def _is_locked(file: Path) -> bool:
    with closing(sqlite3.connect(file, isolation_level=None, timeout=5)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        other.rollback()
        return False


def worker_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to a worker."""
    kill(_workers(world, study))


def worker_stopped(world: World, study: Struck, draw: random.Random) -> None:
    """SIGSTOP to a worker until it has been given up; it must not come back."""
    workers = _workers(world, study)
    kill(workers, signal.SIGSTOP)
    psutil.wait_procs(workers, timeout=300)
    kill(workers, signal.SIGCONT)
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive, "a worker that was given up came back"


def node_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to every process of a Ray node; another node is started."""
    world.nodes.end_one()


def worker_told(world: World, study: Struck, draw: random.Random) -> None:
    """SIGTERM to a worker, as before a preemption: its trial saves, and no attempt is lost."""
    study.wait_for_progress()  # a report may still be on its way since the last disruption
    lost = study.lost()
    workers = _workers(world, study)
    kill(workers, signal.SIGTERM)
    _, alive = psutil.wait_procs(workers, timeout=300)
    assert not alive, "a worker that was told to end did not end"
    study.wait_for_progress()
    assert study.lost() == lost, f"a worker that was told to end lost its attempt: {study.lost()}"


def node_told(world: World, study: Struck, draw: random.Random) -> None:
    """SIGTERM to a node without notice; another node is started."""
    world.nodes.end_one(kindly=True)


def head_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to the head of the cluster; the driver ends, and the study continues on another."""
    world.nodes.kill_head()
    try:
        code = study.driver.wait(timeout=300)
    except subprocess.TimeoutExpired:
        study.driver.kill()
        raise AssertionError("a driver whose cluster had lost its head did not end") from None
    finally:
        world.nodes.replace()
    assert code in (0, 3), f"a driver whose cluster had lost its head ended with {code}"


def server_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to the database server, which starts again after a while."""
    assert world.server is not None
    world.server.kill()
    time.sleep(draw.uniform(0.5, 4.0))
    world.server.start()


def connection_dropped(world: World, study: Struck, draw: random.Random) -> None:
    """The driver's connection to the database breaks, and for a while it gets no new one."""
    assert world.wire is not None
    with world.wire.cut():
        time.sleep(draw.uniform(0.2, 4.0))


def connection_delayed(world: World, study: Struck, draw: random.Random) -> None:
    """The database stops answering, for less or more time than the driver waits."""
    assert world.wire is not None
    with world.wire.silent():
        time.sleep(draw.uniform(1.0, 12.0))


def database_locked(world: World, study: Struck, draw: random.Random) -> None:
    """Another program locks the database file, for less or more time than the driver waits."""
    assert world.own_file is not None
    with closing(sqlite3.connect(world.own_file, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(draw.uniform(1.0, 6.0))
        other.rollback()


def database_full(world: World, study: Struck, draw: random.Random) -> None:
    """The disk of the database is full."""
    with filled(world.disk):
        time.sleep(draw.uniform(1.0, 5.0))


def checkpoints_full(world: World, study: Struck, draw: random.Random) -> None:
    """The disk of the checkpoints is full."""
    with filled(world.checkpoints):
        time.sleep(draw.uniform(1.0, 5.0))


def checkpoint_corrupted(world: World, study: Struck, draw: random.Random) -> None:
    """Change the checkpoint of the running trial, and force the trial to continue from it."""
    with _halted(world, study, draw) as current:
        for folder in current:
            victim = draw.choice(sorted(path for path in folder.iterdir() if path.is_file()))
            victim.write_bytes(draw.randbytes(victim.stat().st_size // 2))


def checkpoint_deleted(world: World, study: Struck, draw: random.Random) -> None:
    """Remove the checkpoint of the running trial, and force the trial to continue from it."""
    with _halted(world, study, draw) as current:
        for folder in current:
            shutil.rmtree(folder)


def _workers(world: World, study: Struck) -> list[psutil.Process]:
    """The processes of workers: at least one, unless the study's driver has ended."""

    def found() -> bool:
        return bool(world.nodes.workers()) or study.driver.poll() is not None

    wait_for("a worker", found)
    return world.nodes.workers()


@contextmanager
def _halted(world: World, study: Struck, draw: random.Random) -> Iterator[list[Path]]:
    """Yield the checkpoints that running trials have to continue from, with everything halted.

    The workers are halted first: a report that is on its way to the driver still goes on record,
    and may pause its trial, which then never reads the checkpoint that was on record before.

    The workers are killed afterwards. Yields an empty list if the driver ended before a trial had
    such a checkpoint, or if none appeared in time.
    """
    give_up = time.monotonic() + OPPORTUNITY_S
    driver = psutil.Process(study.driver.pid)
    while True:
        workers = _workers(world, study)
        halt(workers)
        time.sleep(ARRIVAL_S)
        halt([driver])
        newcomers = set(world.nodes.workers()) - set(workers)
        running = study.rows("SELECT checkpoint, number FROM trials", which=CONTINUES)
        needed = [Path(path) for path, _ in running if path is not None and is_needed(Path(path))]
        if newcomers:
            needed = []
        if needed or study.driver.poll() is not None or time.monotonic() > give_up:
            break
        kill([driver, *workers], signal.SIGCONT)
        time.sleep(draw.uniform(0.0, 0.3))
    yield needed
    kill(workers)
    kill([driver], signal.SIGCONT)


def is_needed(checkpoint: Path) -> bool:
    """Whether the trial that names a checkpoint has to continue from it once its worker is gone.

    A worker that has saved a newer checkpoint may already have made its next report, and that
    report may be on its way to the driver. The trial can then pause and never read this checkpoint
    again. If it is the best of a trial that is not promoted, nothing replaces it, and `hpsearch db
    check` finds the damage.
    """
    newest = checkpoint.parent / "last"
    return checkpoint.is_dir() and newest.is_symlink() and newest.readlink().name == checkpoint.name


KINDS: dict[str, Strike] = {
    "driver killed": driver_killed,
    "worker killed": worker_killed,
    "node killed": node_killed,
    "head killed": head_killed,
    "worker told to end": worker_told,
    "node told to end": node_told,
    "server killed": server_killed,
    "driver stopped": driver_stopped,
    "worker stopped": worker_stopped,
    "disk of checkpoints full": checkpoints_full,
    "disk of the database full": database_full,
    "checkpoint corrupted": checkpoint_corrupted,
    "checkpoint deleted": checkpoint_deleted,
    "connection dropped": connection_dropped,
    "connection delayed": connection_delayed,
    "database locked": database_locked,
}

COSTLY = (
    "worker killed",
    "driver killed",
    "worker told to end",
    "node killed",
    "driver killed",
    "worker killed",
)
"""Kinds that cost a study part of its budget, for a study with a tight one."""

DAMAGE = {"checkpoint corrupted", "checkpoint deleted"}
"""Kinds that damage what was saved: the trial continues from an earlier checkpoint, or restarts."""


def possible(world: World) -> tuple[list[str], dict[str, str]]:
    """The kinds that are possible here, and why the others are not."""
    without: dict[str, str] = {}
    if world.server is None:
        without["server killed"] = "there is no temporary database server"
    if world.wire is None:
        without["connection dropped"] = without["connection delayed"] = (
            "there is no temporary database server"
        )
    if world.own_file is None:
        without["database locked"] = without["disk of the database full"] = (
            "there is no temporary SQLite file"
        )
    if not world.mounted:
        why = "mounting a small disk is not permitted"
        without |= {"disk of checkpoints full": why, "disk of the database full": why}
    return [kind for kind in KINDS if kind not in without], without
