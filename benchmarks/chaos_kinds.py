"""The kinds of trouble: what each one breaks, and mends again."""

from __future__ import annotations

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

from chaos_study import Struck
from chaos_world import World, filled, kill, wait_for

Strike = Callable[[World, Struck, random.Random], None]


def driver_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to the driver."""
    study.driver.kill()
    study.driver.wait()


def driver_stopped(world: World, study: Struck, draw: random.Random) -> None:
    """SIGSTOP to the driver until another one has taken over; back again, it must be refused."""
    zombie = study.driver
    zombie.send_signal(signal.SIGSTOP)
    try:
        finished = study.state()[0] == "finished"  # it had written its last word, and ends as if nothing had been
        wait_for("the end of a lease", lambda: study.state()[1] < time.time())
        study.resume()
        study.wait_for_progress()
    finally:
        zombie.send_signal(signal.SIGCONT)
    try:
        code = zombie.wait(timeout=60)
    except subprocess.TimeoutExpired:
        zombie.kill()
        raise AssertionError("a driver whose study was taken over went on") from None
    assert code == (0 if finished else 4), f"a driver whose study was taken over ended with {code}"


def worker_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to a worker."""
    kill(world.nodes.workers())


def worker_stopped(world: World, study: Struck, draw: random.Random) -> None:
    """SIGSTOP to a worker until it was given up; it must not come back."""
    workers = world.nodes.workers()
    kill(workers, signal.SIGSTOP)
    psutil.wait_procs(workers, timeout=60)
    kill(workers, signal.SIGCONT)
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive, "a worker that was given up came back"


def node_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to every process of a Ray node; another node comes."""
    world.nodes.end_one()


def worker_told(world: World, study: Struck, draw: random.Random) -> None:
    """SIGTERM to a worker, as before a preemption: its trial saves and goes on elsewhere, and no attempt is lost."""
    study.wait_for_progress()  # after a strike before this one, a report may still have been under way
    lost = study.lost()
    workers = world.nodes.workers()
    kill(workers, signal.SIGTERM)
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive, "a worker that was told to end did not"
    study.wait_for_progress()
    assert study.lost() == lost, f"a worker that was told to end lost its attempt: {study.lost()}"


def node_told(world: World, study: Struck, draw: random.Random) -> None:
    """SIGTERM to a node, with no notice before; another node comes, and no attempt is lost."""
    study.wait_for_progress()  # after a strike before this one, a report may still have been under way
    lost = study.lost()
    world.nodes.end_one(kindly=True)
    study.wait_for_progress()
    assert study.lost() == lost, f"a node that was told to end lost its attempts: {study.lost()}"


def head_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to the head of the cluster; the driver ends in order, and goes on with another cluster."""
    world.nodes.kill_head()
    try:
        code = study.driver.wait(timeout=60)
    except subprocess.TimeoutExpired:
        study.driver.kill()
        raise AssertionError("a driver without a head of its cluster went on") from None
    finally:
        world.nodes.replace()
    assert code in (0, 3), f"a driver without a head of its cluster ended with {code}"


def server_killed(world: World, study: Struck, draw: random.Random) -> None:
    """SIGKILL to the database server, which comes back after a while."""
    assert world.server is not None
    world.server.kill()
    time.sleep(draw.uniform(0.5, 4.0))
    world.server.start()


def connection_dropped(world: World, study: Struck, draw: random.Random) -> None:
    """The driver's connection to the database breaks, and for a while it gets no other."""
    assert world.wire is not None
    with world.wire.cut():
        time.sleep(draw.uniform(0.2, 4.0))


def connection_delayed(world: World, study: Struck, draw: random.Random) -> None:
    """The database falls silent, for less or for more than it is waited for."""
    assert world.wire is not None
    with world.wire.silent():
        time.sleep(draw.uniform(1.0, 12.0))


def database_locked(world: World, study: Struck, draw: random.Random) -> None:
    """Another program locks the database file, for less or for more than it is waited for."""
    assert world.own_file is not None
    with closing(sqlite3.connect(world.own_file, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(draw.uniform(1.0, 6.0))
        other.rollback()


def database_full(world: World, study: Struck, draw: random.Random) -> None:
    """The disk of the database has no room left."""
    with filled(world.disk):
        time.sleep(draw.uniform(1.0, 5.0))


def checkpoints_full(world: World, study: Struck, draw: random.Random) -> None:
    """The disk of the checkpoints has no room left."""
    with filled(world.checkpoints):
        time.sleep(draw.uniform(1.0, 5.0))


def checkpoint_corrupted(world: World, study: Struck, draw: random.Random) -> None:
    """The checkpoint that the running trial would continue from is changed; and it has to."""
    with _halted(world, study) as current:
        for folder in current:
            victim = draw.choice(sorted(path for path in folder.iterdir() if path.is_file()))
            victim.write_bytes(draw.randbytes(victim.stat().st_size // 2))


def checkpoint_deleted(world: World, study: Struck, draw: random.Random) -> None:
    """The checkpoint that the running trial would continue from is removed; and it has to."""
    with _halted(world, study) as current:
        for folder in current:
            shutil.rmtree(folder)


@contextmanager
def _halted(world: World, study: Struck) -> Iterator[list[Path]]:
    """The checkpoints that running trials would continue from; and when they are damaged, they have to.

    Everything is halted meanwhile, and trials near their end are spared: one that had completed, with nobody told yet,
    would never look at its checkpoint again.
    """
    workers = world.nodes.workers()
    halted = [psutil.Process(study.driver.pid), *workers]
    kill(halted, signal.SIGSTOP)
    running = study.rows("SELECT checkpoint, number FROM trials", which="state = 'running' AND resource < 7")
    yield [Path(path) for path, _ in running if path is not None and Path(path).is_dir()]
    kill(workers)
    kill(halted[:1], signal.SIGCONT)


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

COSTLY = ("worker killed", "driver killed", "worker told to end", "node killed", "driver killed", "worker killed")
"""Kinds that cost a study a part of its budget, for one that has little."""

DAMAGE = {"checkpoint corrupted", "checkpoint deleted"}
"""Kinds that take what was saved: the trial continues from the checkpoint before, or afresh."""


def possible(world: World) -> tuple[list[str], dict[str, str]]:
    """The kinds that can be had here, and why not the others."""
    without: dict[str, str] = {}
    if world.server is None:
        without["server killed"] = "the database has no server of ours"
    if world.wire is None:
        without["connection dropped"] = without["connection delayed"] = "no connection to a database of ours"
    if world.own_file is None:
        without["database locked"] = without["disk of the database full"] = "the database is no file of ours"
    if not world.mounted:
        why = "mounting a small disk is not permitted"
        without |= {"disk of checkpoints full": why, "disk of the database full": why}
    return [kind for kind in KINDS if kind not in without], without
