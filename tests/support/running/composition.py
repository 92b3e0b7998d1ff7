"""The services of `docker/compose.yaml` as processes of this machine, each on a host of its own."""

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg

from support.files.compose import SERVICES, resolved
from support.patience import wait_until
from support.running.hosts import Host, Network
from support.running.postgresql import PostgreSQL

BIN = Path(sys.executable).parent
HOSTS = ("database", "ray-head", "ray-worker-1", "ray-worker-2", "driver")

NODE_IS_UP = "Ray runtime started"
STARTS = 4

SOON = {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "8",
    "HPSEARCH_DATABASE_TIMEOUT": "3",
}
"""What lets every part notice within seconds that another one is silent."""


class Composition:
    """The services of `docker/compose.yaml` with two workers, as its entry points, commands and
    environments say. Its folders `/study` and `/checkpoints` are in `folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.study, self._checkpoints = folder / "study", folder / "checkpoints"
        self.study.mkdir()
        self._checkpoints.mkdir()
        self._variables = {
            "POSTGRES_PASSWORD": secrets.token_hex(8),
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "STUDY_DIR": str(self.study),
            "WORKER_CPUS": "1",
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._network = Network(folder, HOSTS)
        try:
            self.host("database").power_on()
            self._database = self._new_database()
        except BaseException:
            self._network.close()
            raise

    def _new_database(self) -> PostgreSQL:
        """The server, with what the environment of its image would make."""
        asked = SERVICES["database"]["environment"]
        user, password = asked["POSTGRES_USER"], self._filled(asked["POSTGRES_PASSWORD"])
        inside = self.host("database").enter
        server = PostgreSQL(5432, self.host("database").address, user, password, inside)
        url = f"postgresql://{user}@/postgres?host={server.folder}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {asked['POSTGRES_DB']}".encode())
        return server

    @property
    def database_url(self) -> str:
        """The database, as only this machine reaches it, and always."""
        return f"postgresql://hpsearch@/hpsearch?host={self._database.folder}"

    def host(self, name: str) -> Host:
        """The host of a service."""
        return self._network.hosts[name]

    def up(self) -> None:
        """Start the cluster, and then the driver."""
        self.start_cluster()
        self.start("driver")

    def start_cluster(self) -> None:
        """Start the head and, when it is healthy, the workers."""
        self.start("ray-head")
        kind, *test = self._service("ray-head")["healthcheck"]["test"]
        assert kind == "CMD"
        wait_until(lambda: self._run("ray-head", test).wait() == 0)
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.start, ("ray-worker-1", "ray-worker-2")))

    def start(self, name: str, *command: str) -> None:
        """Start a service with its own command, or with another one, and wait for its Ray node.
        On a busy machine Ray may give up after half a minute: once more, as Docker would."""
        service = self._service(name)
        words = [*service["entrypoint"], *(command or service.get("command", ()))]
        for _ in range(STARTS):
            self.host(name).power_on()
            self._running[name] = self._run(name, words)
            if self._is_up(name):
                return
            self.host(name).power_off()
        raise AssertionError(f"{name} does not start: {self.said(name)}")

    def _is_up(self, name: str) -> bool:
        """Wait until the node of a service is up; False if the service ends without."""
        running, before = self._running[name], self.said(name).count(NODE_IS_UP)

        def is_up() -> bool:
            return self.said(name).count(NODE_IS_UP) > before

        wait_until(lambda: is_up() or running.poll() is not None)
        return is_up()

    def restart(self, name: str) -> None:
        """Start a service again that ends by itself, as soon as it has."""
        self.ended(name)
        self.kill(name)
        self.start(name)

    def kill(self, name: str) -> None:
        """Kill a service, and everything it has started."""
        self.host(name).power_off()
        self._running[name].wait()

    def ended(self, name: str) -> int:
        """Wait until a service has ended; its exit code."""
        running = self._running[name]
        wait_until(lambda: running.poll() is not None)
        return running.returncode

    def said(self, name: str) -> str:
        """What a service has printed since the first start."""
        log = self._log(name)
        return log.read_text() if log.exists() else ""

    def wait_for(self, text: str) -> None:
        """Wait until the driver says something."""
        self.wait_until(lambda: text in self.said("driver"))

    def wait_until(self, happened: Callable[[], object]) -> None:
        """Wait until something has happened, or fail if the driver ends without."""
        driver = self._running["driver"]
        wait_until(lambda: happened() or driver.poll() is not None)
        assert happened(), self.said("driver")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the database answers; nothing while it has no tables yet."""
        with psycopg.connect(self.database_url) as connection:
            if connection.execute("SELECT to_regclass('reports')").fetchone() == (None,):
                return []
            return connection.execute(query.encode()).fetchall()

    def close(self) -> None:
        """Stop everything."""
        try:
            self._database.stop()
        finally:
            self._network.close()
        for running in self._running.values():
            running.wait()

    def _service(self, name: str) -> dict[str, Any]:
        return SERVICES[name.removesuffix("-1").removesuffix("-2")]

    def _run(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command as in the container of a service."""
        environment = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
            "RAY_prestart_worker_first_driver": "0",
            **SOON,
            **{
                key: self._filled(value)
                for key, value in self._service(name)["environment"].items()
            },
        }
        words = [self._filled(word) for word in command]
        return self.host(name).start(words, environment, self.study, self._log(name))

    def _filled(self, text: str) -> str:
        """A text of the file as a container has it, with the folders of this machine."""
        filled = resolved(text, self._variables).replace("$$", "$")
        return filled.replace("/study/", f"{self.study}/").replace(
            "/checkpoints", str(self._checkpoints)
        )

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"
