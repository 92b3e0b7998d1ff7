"""A PostgreSQL server of the tests' own, without durability."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

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
