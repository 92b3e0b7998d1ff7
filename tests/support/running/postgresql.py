"""A PostgreSQL server of the tests' own, without durability, and a pooler before it."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL

from support.patience import wait_until
from support.running.programs import run_program


class PostgreSQL:
    """A server that runs until `stop`, as another user than root, which PostgreSQL refuses.

    Skips the test where PostgreSQL is not installed, unless HPSEARCH_TESTS_REQUIRE_POSTGRESQL=1
    asks for a failure.

    Args:
        port: Where it listens.
        host: The address at which it listens.
        user: The name of its owner.
        password: Asked of whoever comes over the network. None: nobody is asked.
        inside: Words to put before its commands, such as those that enter a host.

    Attributes:
        folder: Its files, and a socket, where nobody is asked for a password.
    """

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        user: str = "tester",
        password: str | None = None,
        inside: Sequence[str] = (),
    ) -> None:
        self._programs = _programs()
        # Not pytest's own folder: that one is closed to the unprivileged user.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._data = self.folder / "data"
        self._before = [*inside, *_unprivileged(self.folder)]
        try:
            self._make(user, password)
            self._start(host, port)
        except BaseException:
            self._remove()
            raise

    def _make(self, user: str, password: str | None) -> None:
        asks = ["--auth=trust"]
        if password is not None:
            secret = self.folder / "password"
            secret.write_text(password)
            secret.chmod(0o444)
            asks = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}"]
        self._call("initdb", "-U", user, "-E", "UTF8", "--no-locale", "--no-sync", *asks)
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n")

    def _start(self, host: str, port: int) -> None:
        fast = "-F -c full_page_writes=off -c synchronous_commit=off"
        settings = f"-k {self.folder} -h {host} -p {port} {fast}"
        # Its output goes to a file: the server would keep a pipe open for as long as it lives.
        self._call("pg_ctl", "-l", str(self.folder / "log"), "-o", settings, "-w", "start")

    def stop(self) -> None:
        """Stop it, and remove its files."""
        try:
            self._call("pg_ctl", "-m", "immediate", "-w", "stop")
        finally:
            self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *arguments: str) -> None:
        done = run_program(
            [*self._before, str(self._programs / program), "-D", str(self._data), *arguments],
            cwd=self.folder,
        )
        assert done.returncode == 0, f"{program} failed: {done.stdout}{done.stderr}"


@contextmanager
def pgbouncer(server: URL, port: int, mode: str) -> Iterator[str]:
    """The URL of a database of a server through a PgBouncer, which runs as another user than root.

    Skips the test where it is not installed, unless HPSEARCH_TESTS_REQUIRE_PGBOUNCER=1 asks for a
    failure."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        if os.environ.get("HPSEARCH_TESTS_REQUIRE_PGBOUNCER") == "1":
            pytest.fail("PgBouncer is not installed, and these tests must not be skipped")
        pytest.skip("PgBouncer is not installed")
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as made:
        folder = Path(made)
        (folder / "users").write_text(f'"{server.username}" ""\n')
        settings = folder / "settings"
        settings.write_text(
            f"[databases]\npooled = host={server.host} port={server.port} dbname={server.database}"
            f" user={server.username}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = any\nauth_file = {folder}/users\npool_mode = {mode}\n"
            "default_pool_size = 1\n"
        )
        for file in (folder / "users", settings):
            file.chmod(0o644)
        words = [*_unprivileged(folder), program, str(settings)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: _listens(port) or process.poll() is not None)
            yield f"postgresql://{server.username}@127.0.0.1:{port}/pooled"
        finally:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _programs() -> Path:
    """The folder of PostgreSQL's own programs, the newest where there are several."""
    candidates = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: each.parent.name, reverse=True
    )
    if pg_config := shutil.which("pg_config"):
        told = subprocess.check_output([pg_config, "--bindir"], text=True)
        candidates.insert(0, Path(told.strip()))
    for folder in candidates:
        if (folder / "initdb").exists():
            return folder
    if os.environ.get("HPSEARCH_TESTS_REQUIRE_POSTGRESQL") == "1":
        pytest.fail("PostgreSQL's server is not installed, and these tests must not be skipped")
    pytest.skip("PostgreSQL's server is not installed: there is no initdb")


def _unprivileged(folder: Path) -> list[str]:
    """Words to put before a command so that it does not run as root; its user owns the folder."""
    if os.geteuid() != 0:
        return []
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
