"""A real SLURM of several nodes on this machine, of which each can lose its power."""

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from support.patience import wait_until
from support.running.command_runs import is_gone

DAEMONS = ("slurmctld", "slurmd", "munged")

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MpiDefault=none
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN\n"


def path_with_daemons() -> str:
    """The PATH, with the folder of daemons."""
    return f"{os.environ['PATH']}:/usr/sbin"


def missing_daemon() -> str | None:
    """A daemon of SLURM that this machine lacks."""
    path = path_with_daemons()
    return next((name for name in DAEMONS if shutil.which(name, path=path) is None), None)


class Slurm:
    """A SLURM of this user.

    Args:
        folder: For all its files; a short path, as a socket is in it.
        nodes: The names of its nodes, each with two cores.
    """

    def __init__(self, folder: Path, nodes: tuple[str, ...] = ("n1", "n2")) -> None:
        self._folder = folder
        host = socket.gethostname()
        node_lines = [NODE.format(node=node, host=host, port=_free_port()) for node in nodes]
        configuration = folder / "slurm.conf"
        self.environment = {"SLURM_CONF": str(configuration)}
        settings = {"host": host, "port": _free_port(), "user": getpass.getuser()}
        text = CONFIGURATION.format(folder=folder, **settings)
        configuration.write_text(text + "".join(node_lines))
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        places = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
        places["seed-file"] = "seed"
        options = [f"--{option}={folder}/munge.{end}" for option, end in places.items()]
        self.call("munged", "--force", *options)
        self.call("slurmctld")
        for node in nodes:
            self.power_on(node)
        wait_until(lambda: self.call("sinfo", "-h", "-t", "idle", "-o", "%D") == str(len(nodes)))

    def call(self, *command: str) -> str:
        """What one of SLURM's commands prints."""
        environment = {**os.environ, **self.environment, "PATH": path_with_daemons()}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.strip()

    def power_on(self, node: str) -> None:
        self.call("slurmd", "-N", node)

    def cut_power(self, node: str) -> None:
        """Kill a node's daemon, and then all that runs on it: nobody reports the end."""
        os.kill(int((self._folder / f"{node}.pid").read_text()), signal.SIGKILL)
        of_jobs = _processes_on(node)
        steps = {parent for parent in map(_parent, of_jobs) if _is_step(parent)}
        for process in [*steps, *of_jobs]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def state_of(self, job: str) -> str:
        """The state of a job, such as RUNNING; empty if it has left the queue."""
        return self.call("squeue", "-h", "-o", "%T", f"--jobs={job}")

    def has_requeued(self, job: str) -> bool:
        """True if a job that ran waits to start again."""
        is_waiting = self.state_of(job) == "PENDING"
        return is_waiting and "Restarts=1" in self.call("scontrol", "show", "job", job)

    def start_now(self, job: str) -> None:
        """Start a job that SLURM would let wait for two minutes. In the second in which it was
        requeued, its node would refuse it ("Job credential revoked")."""
        self.call("scontrol", "update", f"jobid={job}", "StartTime=now+5")

    def stop(self) -> None:
        """Cancel all jobs, and end all daemons."""
        self.call("scancel", f"--user={getpass.getuser()}")
        wait_until(lambda: not self.call("squeue", "-h"))
        daemons = [int(file.read_text()) for file in self._folder.glob("*.pid")]
        for daemon in daemons:
            with suppress(ProcessLookupError):
                os.kill(daemon, signal.SIGTERM)
        wait_until(lambda: all(map(is_gone, daemons)))


def _processes_on(node: str) -> list[int]:
    wanted = f"SLURMD_NODENAME={node}".encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _is_step(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/comm").read_text().startswith("slurmstepd")
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
