"""`hpsearch dashboard`: Optuna's dashboard on our database."""

from __future__ import annotations

import signal
import threading
from contextlib import closing
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from hpsearch.cli.output import note
from hpsearch.errors import UserError
from hpsearch.store.store import Store

LOOPBACK = "127.0.0.1"
"""Nobody but this machine's users: the dashboard asks for no password."""


def dashboard(name: str | None, port: int, storage: str) -> None:
    """Serve the dashboard until interrupted.

    Args:
        name: The study to show first.
        port: On 127.0.0.1; 0 takes a free one.
        storage: The database's URL.

    Raises:
        UserError: The dashboard is not installed, or the port is taken.
        StudyNotFound: There is no study of that name.
    """
    try:
        from optuna_dashboard import wsgi
    except ModuleNotFoundError:
        hint = "install it: pip install 'hpsearch[dashboard]'"
        raise UserError("the dashboard is not installed", hint) from None
    from hpsearch.optuna_storage import StudyStorage

    with closing(Store.open(storage, create=False)) as store:
        study = None if name is None else store.find_study(name)
        try:
            server = make_server(LOOPBACK, port, wsgi(StudyStorage(store)), handler_class=_Quiet)
        except OSError as error:
            raise UserError(f"cannot listen on port {port}: {error.strerror}", "choose another with --port") from None
        with server:
            path = "dashboard" if study is None else f"dashboard/studies/{study.id}"
            note(f"http://{LOOPBACK}:{server.server_port}/{path} (Ctrl-C ends it)")
            _serve(server)


def _serve(server: WSGIServer) -> None:
    """Serve until Ctrl-C, also where that falls into a request: wsgiref takes any exception there for the request's.

    Raises:
        KeyboardInterrupt: At its end.
    """
    before = signal.signal(signal.SIGINT, lambda *_: threading.Thread(target=server.shutdown).start())
    try:
        server.serve_forever()
    finally:
        signal.signal(signal.SIGINT, before)
    raise KeyboardInterrupt


class _Quiet(WSGIRequestHandler):
    """Answers without a line on stderr for every request."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
