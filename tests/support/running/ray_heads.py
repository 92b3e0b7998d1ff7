"""A Ray cluster of processes of its own, started as on machines of its own."""

import os
import secrets
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.request import Request, urlopen

from support.patience import wait_until

RAY = str(Path(sys.executable).with_name("ray"))


class RayHead:
    """The head of a cluster that asks for a token, with its temporary files in a short `folder`.
    It runs trials on `cpus`."""

    def __init__(self, folder: Path, cpus: int, *, jobs: bool = False) -> None:
        self._folder = folder
        self._nodes: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            "PATH": f"{Path(RAY).parent}:{os.environ['PATH']}",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        agent = f"--dashboard-agent-listen-port={_free_port()}"  # its usual one is another Ray's
        dashboard = [f"--dashboard-port={port}", agent] if jobs else []
        options = [f"--include-dashboard={str(jobs).lower()}", f"--temp-dir={folder}", *dashboard]
        self.start([RAY, "start", "--head", "--port=0", *options, f"--num-cpus={cpus}"])
        address = folder / "ray_current_cluster"
        wait_until(lambda: address.exists() and address.read_text())
        self.address = address.read_text().strip()
        if jobs:
            wait_until(self._takes_jobs)

    def _takes_jobs(self) -> bool:
        """True once the job server and the agent of the node have begun."""
        sent = {"Content-Type": "application/json"}
        sent["Authorization"] = f"Bearer {self.environment['RAY_AUTH_TOKEN']}"
        job = Request(f"{self.url}/api/jobs/", b'{"entrypoint": "true"}', sent)
        with suppress(OSError), urlopen(job):
            return True
        return False

    def start(self, command: list[str]) -> None:
        """Start a node by a command, to which is added that it stays."""
        said = self._folder.with_name(f"{self._folder.name}-{len(self._nodes)}.log")
        command = [*command, "--block", "--disable-usage-stats"]
        with said.open("wb") as out:
            started = subprocess.Popen(command, env=self.environment, stdout=out, stderr=out)
        self._nodes.append(started)

    def stop(self) -> None:
        """End all nodes, the head last."""
        for node in reversed(self._nodes):
            node.terminate()
            node.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
