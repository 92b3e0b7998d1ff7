"""A dashboard that runs as a person starts it, for tests that ask it."""

import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

from hpsearch.store.store import Store
from support.patience import PATIENCE_S


@dataclass(frozen=True)
class Served:
    """A dashboard that was started."""

    process: subprocess.Popen[str]
    link: str

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> HTTPResponse:
        """Its answer to a request to 127.0.0.1, whatever its link names."""
        connection = HTTPConnection("127.0.0.1", urlsplit(self.link).port or 80, timeout=PATIENCE_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"Connection": "close", **named})
        return connection.getresponse()

    def interrupt(self) -> str:
        """End it as Ctrl-C does, and give what else it said."""
        assert self.process.stderr is not None
        self.process.send_signal(signal.SIGINT)
        more = self.process.stderr.read()
        assert self.process.wait(timeout=PATIENCE_S) == 130, more
        return more


@contextmanager
def served(url: str, *arguments: str) -> Iterator[Served]:
    """A dashboard on a free port, until the block ends."""
    program = [sys.executable, "-c", "from hpsearch.cli.main import main; main()", "dashboard"]
    options = ["--port", "0", "--storage", url]
    with subprocess.Popen(
        [*program, *arguments, *options], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            told = next((line for line in process.stderr if "http://" in line), "it ended")
            link = re.match(r"(http://\S+) \(stop with Ctrl-C\)$", told)
            assert link is not None, told
            yield Served(process, link[1])
        finally:
            process.kill()


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """Serve an application on a free port, which this gives, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        import uvicorn  # not every machine has what a dashboard needs

        config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(timeout=PATIENCE_S)


def site_behind_gate(store: Store, *, allow_changes: bool, **more: float) -> Any:
    """The dashboard on a database, for those on this machine."""
    from hpsearch.views.pages.gate import Gate  # not every machine has what it needs
    from hpsearch.views.pages.site import site_of

    site = site_of(store, allow_changes=allow_changes, **more)
    return Gate(site, None, allow_changes=allow_changes)
