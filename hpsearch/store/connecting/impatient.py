"""Connections to PostgreSQL, apart: SQLite does without psycopg, which is slow to import."""

import time
from collections.abc import Generator
from typing import Any

import psycopg

from hpsearch.store.connecting import waiting


class Impatient(psycopg.Connection[Any]):
    """A connection to PostgreSQL that breaks when the server falls silent.

    A server that is stopped, or a network that swallows everything, sends no error: a driver would
    wait for the answer to a commit forever."""

    def wait(self, gen: Any, *rest: Any, **more: Any) -> Any:
        return super().wait(self._awaited(gen), *rest, **more)

    def _awaited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        ready, patience_s = None, waiting.answer_s()
        give_up = time.monotonic() + patience_s
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield wanted
            if ready:
                give_up = time.monotonic() + patience_s
            elif time.monotonic() > give_up:
                self.close()  # whatever it would still answer is of no use to anyone
                raise psycopg.OperationalError(f"the server fell silent for {patience_s:g} s")
