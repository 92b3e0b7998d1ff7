"""What the contracts share: an open store in each kind of database, and commands on it."""

from collections.abc import Callable, Iterator
from contextlib import closing

import optuna
import pytest

from hpsearch.cli.main import main
from hpsearch.store.store import Store

Run = Callable[..., tuple[int, str, str]]
"""Runs a command in this process; returns its exit code, and all that it wrote to both streams."""


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An empty database of each kind in turn."""
    with closing(Store.open(database_url)) as opened:
        yield opened


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        return int(ended.value.code or 0), *capsys.readouterr()

    return call


@pytest.fixture
def quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)
