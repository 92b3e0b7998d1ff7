"""What tests share: layers, a quick round, and databases of both kinds, private to each test."""

import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest

from support import thoroughness
from support.running.postgresql import PostgreSQL, free_port

TESTS = Path(__file__).parent

# Several tests run side by side, and so do the processes that they start. Set before torch is
# imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Ray starts its workers with a niceness of 15: beside tests that compute they would hardly run.
os.environ.setdefault("RAY_worker_niceness", "0")
# Nor does it start workers that nobody has asked for: each takes seconds of a core.
os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
# In the background of a script a process ignores SIGINT, and so would all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# In memory, where there is room, nothing waits for a disk. What a crash leaves there is the same.
if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 8 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="without what is marked thorough, and with fewer examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    thoroughness.quick = config.getoption("quick")
    # How long an example takes says something about the machine, and nothing about the program.
    # Fixtures that are shared by all examples of a test are meant to be.
    hypothesis.settings.register_profile(
        "untimed",
        max_examples=thoroughness.examples(100),
        deadline=None,
        suppress_health_check=[
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.function_scoped_fixture,
        ],
    )
    hypothesis.settings.load_profile("untimed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tables of the tests beside other libraries."""
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        for name, line in getattr(report, "user_properties", ()):
            if name == "reference":
                terminalreporter.write_line(line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test with its layer, its folder's name; leave out what is thorough if asked."""
    for item in items:
        layer = item.path.relative_to(TESTS).parts[0]
        item.add_marker(layer)
    if not config.getoption("quick"):
        return
    quick = set(_some_cases([item for item in items if not item.get_closest_marker("thorough")]))
    config.hook.pytest_deselected(items=[item for item in items if item not in quick])
    items[:] = [item for item in items if item in quick]


def _some_cases(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """The tests of a quick round: of one with many parameters, as many as its mark says, or two;
    its first case, its last, and what lies evenly between."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.split("[")[0], []).append(item)
    for cases in tests.values():
        mark = cases[0].get_closest_marker("cases")
        number = min(mark.args[0] if mark else thoroughness.CASES, len(cases))
        steps = max(1, number - 1)
        yield from (cases[round(i * (len(cases) - 1) / steps)] for i in range(number))


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prepared data goes to a folder of the tests' own, also that of the programs they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPSEARCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a PostgreSQL server of the tests' own."""
    port = free_port()
    server = PostgreSQL(port)
    yield f"postgresql://tester@127.0.0.1:{port}/postgres"
    server.stop()


@pytest.fixture(scope="session")
def new_postgresql_url(postgresql_server: str) -> Iterator[Callable[[], str]]:
    """Makes the URL of an empty database; a schema of its own in the one server, which is made in a
    millisecond."""
    names = (f"test_{n}" for n in itertools.count())
    with psycopg.connect(postgresql_server, autocommit=True) as connection:

        def make() -> str:
            name = next(names)
            connection.execute(f"CREATE SCHEMA {name}".encode())
            return f"{postgresql_server}?options=-csearch_path%3D{name}"

        yield make


@pytest.fixture
def postgresql_url(new_postgresql_url: Callable[[], str]) -> str:
    """The URL of an empty PostgreSQL database."""
    return new_postgresql_url()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite database whose file is not there yet."""
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, of each kind in turn."""
    url = request.getfixturevalue(f"{request.param}_url")
    assert isinstance(url, str)
    return url
