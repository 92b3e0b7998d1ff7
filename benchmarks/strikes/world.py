"""What is disrupted: a cluster of three Ray nodes, databases, connections and small disks."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
from ray.cluster_utils import Cluster

from hpsearch.running.executors.ray_slot import WorkerActor

HEALTH_CHECKS = 4
"""So many in a row a node may leave unanswered."""

ACTOR = f"ray::{WorkerActor.__name__}"
"""The name of worker processes."""

ROOM = "32m"
"""The size of a disk that will be filled."""


def kill(processes: list[psutil.Process], number: int = signal.SIGKILL) -> None:
    """Send a signal to all processes that are still running."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def halt(processes: list[psutil.Process]) -> None:
    """Stop all that still run, and wait until none of their threads does anything more."""
    kill(processes, signal.SIGSTOP)
    wait_for("processes that are told to stop", lambda: not any(map(_moves, processes)))


def _moves(process: psutil.Process) -> bool:
    """Whether a thread of a process is neither stopped nor dead. One that waits for a disk stops
    only after that."""
    try:
        stats = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):  # a thread has ended: look again
        return process.is_running()
    states = {stat.rpartition(")")[2].split()[0] for stat in stats}
    return not states <= {"T", "t", "Z", "X"}


def wait_for(what: str, done: Callable[[], object], timeout_s: float = 900.0) -> None:
    """Wait until a condition holds; raises AssertionError after the timeout."""
    give_up = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < give_up, f"timed out after {timeout_s:g} s waiting for {what}"
        time.sleep(0.05)


class Nodes:
    """A Ray cluster: a head without CPUs, and two nodes, each with room for all workers.

    Args:
        workers: The number of workers.
        patience: How many times as long as two seconds a node may be silent until it is lost.
    """

    def __init__(self, workers: int, patience: int) -> None:
        self._cpus = workers
        self._health = {
            "health_check_initial_delay_ms": 0,
            "health_check_period_ms": 500,
            "health_check_failure_threshold": HEALTH_CHECKS * patience,
        }
        self._start()

    def _start(self) -> None:
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": self._health}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address
        self._nodes = [self._cluster.add_node(num_cpus=self._cpus, wait=False) for _ in range(2)]
        self._cluster.wait_for_nodes()

    def workers(self) -> list[psutil.Process]:
        """The processes of workers, on all nodes."""
        return [
            process for node in self._nodes for process in _processes(node) if _is_worker(process)
        ]

    def end_one(self, *, kindly: bool = False) -> None:
        """End a node with everything on it, if possible one with a worker, and start another node.

        Args:
            kindly: Send SIGTERM to its raylet, as `ray stop` does; otherwise kill every process.
        """
        busy = [node for node in self._nodes if any(map(_is_worker, _processes(node)))]
        node = (busy or self._nodes)[0]
        processes = _processes(node)
        if kindly:
            node.all_processes["raylet"][0].process.terminate()
            psutil.wait_procs(processes, timeout=300)
        kill(processes)
        self._nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)
        self._nodes.append(self._cluster.add_node(num_cpus=self._cpus, wait=False))

    def kill_head(self) -> None:
        """Kill the head with everything on it; the other nodes stay as they are until `replace`."""
        kill(_processes(self._cluster.head_node))

    def replace(self) -> None:
        """Replace a cluster that has lost its head."""
        for node in self._nodes:
            kill(_processes(node))
        self._start()

    def close(self) -> None:
        """Stop the cluster."""
        self._cluster.shutdown()


def _processes(node: object) -> list[psutil.Process]:
    """All processes of a Ray node."""
    started = [info.process.pid for infos in node.all_processes.values() for info in infos]  # type: ignore[attr-defined]
    found = []
    for pid in started:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            found += [process, *process.children(recursive=True)]
    return found


def _is_worker(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return ACTOR in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE
    return False


class Server:
    """A temporary PostgreSQL server that recovers when its processes are killed."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._data, self._programs, self._folder = folder / "data", programs, folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._as_user: list[str] = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            user = next(
                pwd.getpwnam(n)
                for n in ("postgres", "nobody")
                if n in {e.pw_name for e in pwd.getpwall()}
            )
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._as_user = [
                "setpriv",
                f"--reuid={user.pw_uid}",
                f"--regid={user.pw_gid}",
                "--clear-groups",
            ]
        self._call(
            "initdb", "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"
        )
        self.start()

    def start(self) -> None:
        """Start it, even after a crash, and wait until it answers."""
        settings = f"-k {self._folder} -h 127.0.0.1 -p {self.port} -c restart_after_crash=on"
        self._call("pg_ctl", "-l", str(self._folder / "log"), "-o", settings, "-w", "start")

    def kill(self) -> None:
        """SIGKILL to the server and all of its processes."""
        postmaster = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
        everything = [postmaster, *postmaster.children(recursive=True)]
        kill(everything)
        psutil.wait_procs(everything, timeout=10)

    def close(self) -> None:
        """Stop the server."""
        self._call("pg_ctl", "-m", "immediate", "-w", "stop")

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, str(self._programs / program), "-D", str(self._data), *arguments]
        subprocess.run(
            command,
            cwd=self._folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def postgresql_programs() -> Path | None:
    """The folder of PostgreSQL's programs, of the newest version if there are several."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: int(each.parts[-3])
    )
    return found[-1].parent if found else None


class Wire:
    """A TCP proxy to a server that can delay or break connections."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._silent, self._cut = threading.Event(), False
        self._passing = threading.Event()
        self._passing.set()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Break every connection, and refuse new ones."""
        self._cut = True
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()
        yield
        self._cut = False

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Let nothing through; data is delayed, not lost."""
        self._passing.clear()
        yield
        self._passing.set()

    def close(self) -> None:
        """Stop the proxy."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = None if self._cut else socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    far = None
                if far is None:
                    near.close()
                    continue
                self._open += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._passing.wait()
                to.sendall(data)
        with suppress(OSError):
            to.shutdown(socket.SHUT_RDWR)


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small disk at a folder, if that is permitted; yields whether it was."""
    folder.mkdir(parents=True)
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)]
    mounted = (
        mount is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill the disk of a folder."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * (1 << 12))
    try:
        yield
    finally:
        filler.unlink()


class World:
    """Everything that can be disrupted, for one storage.

    Args:
        storage: `sqlite` or `postgresql` for a temporary database, or the URL of another one.
        folder: An empty folder.
        nodes: The cluster.
    """

    def __init__(self, storage: str, folder: Path, nodes: Nodes) -> None:
        self.folder, self.nodes = folder, nodes
        self._stack = ExitStack()
        self.server: Server | None = None
        self.wire: Wire | None = None
        self.checkpoints, self.disk = folder / "checkpoints", folder / "database"
        self.mounted = self._stack.enter_context(small_disk(self.checkpoints))
        self.direct_url = self.url = storage
        self.own_file: Path | None = None
        if storage == "sqlite":
            self._stack.enter_context(small_disk(self.disk))
            self.own_file = self.disk / "study.db"
            self.direct_url = self.url = f"sqlite:///{self.own_file}"
        if storage == "postgresql":
            programs = postgresql_programs()
            assert programs is not None, "PostgreSQL's server is not installed: there is no initdb"
            place = Path("/tmp") / f"chaos-{os.getpid()}"
            place.mkdir()
            self._stack.callback(shutil.rmtree, place, ignore_errors=True)
            self.server = Server(place, programs)
            self._stack.callback(self.server.close)
            self.wire = Wire(self.server.port)
            self._stack.callback(self.wire.close)
            url = "postgresql://tester@127.0.0.1:{}/postgres"
            self.direct_url, self.url = url.format(self.server.port), url.format(self.wire.port)

    def close(self) -> None:
        """Stop and unmount everything."""
        self._stack.close()
