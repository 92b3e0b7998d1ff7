"""Who holds a lease: only a process that certainly runs no more is taken for dead."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from hpsearch.domain.records import StudyRecord
from hpsearch.errors import StudyHeld
from hpsearch.running.study_run.ownership import owning, refuse_if_held
from hpsearch.store import owners
from hpsearch.store.owners import is_dead, shown, this_process
from hpsearch.store.reading.queries import only_study
from hpsearch.store.store import Store

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
HOLD = """
import sys
from hpsearch.store.owners import this_process
from hpsearch.store.store import Store
store = Store.open(sys.argv[1])
lease = store.acquire(1, this_process(), 600.0)
print(lease.owner, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with closing(Store.open(sqlite_url)) as opened:
        opened.create_study(StudyRecord(0, "s", ""))
        yield opened


@contextmanager
def held_by_another(store: Store) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that holds the lease, and its name as an owner."""
    command = [sys.executable, "-c", HOLD, store.url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def driver_of(store: Store) -> str | None:
    """Who drives the study, as readings tell it."""
    with store.reading() as connection:
        return only_study(connection).driver


def test_readings_name_no_driver_that_has_died_though_its_lease_runs_on(store):
    with held_by_another(store) as (process, owner):
        assert driver_of(store) == shown(owner)
        process.kill()
        process.wait()
        assert driver_of(store) is None
        holder = store.holder("s")
        assert holder is not None
        assert holder.live


def take_over(store: Store) -> None:
    refuse_if_held(store, "s")
    with owning(store, store.find_study("s"), 60.0):
        pass


def test_a_study_whose_driver_was_killed_here_is_free_at_once(store):
    with held_by_another(store) as (process, owner):
        with pytest.raises(StudyHeld, match=re.escape(f"driven by {shown(owner)} since")):
            take_over(store)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its parent does not know yet
        take_over(store)


@LINUX
def test_a_process_that_was_given_the_id_of_a_dead_one_is_not_taken_for_it():
    mine = this_process()
    assert not is_dead(mine)
    assert is_dead(mine.rpartition("#")[0] + "#1"), "no process of today started with the machine"


def test_a_process_that_has_ended_is_dead_on_its_own_host_alone():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert is_dead(f"ada@{socket.gethostname()}:{ended.pid}#88211")
    assert not is_dead(f"ada@elsewhere:{ended.pid}#88211")


def test_a_system_that_does_not_tell_when_a_process_started_knows_only_who_is_gone():
    """Such as macOS."""
    assert not is_dead(f"ada@{socket.gethostname()}:{os.getpid()}#")


@pytest.mark.parametrize(
    "owner", [f"ada@{socket.gethostname()}:4194303", "host:123", "driver", "", "a@b:1#x", "#/"]
)
def test_an_owner_that_says_too_little_is_never_taken_for_dead(owner):
    """Such as those of older versions: their leases end by themselves."""
    assert not is_dead(owner)
    assert shown(owner) == owner.removesuffix("#x")  # people see no start


def test_people_see_user_host_and_process_and_a_user_without_a_name_by_number(monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(owners.os, "getuid", lambda: 3_999_999)  # nobody has it
    assert shown(this_process()) == f"3999999@{socket.gethostname()}:{os.getpid()}"
    assert re.fullmatch(r".+@.+:\d+", shown(this_process()))
    assert shown("a#b@gpu-1:4711#88211") == "a#b@gpu-1:4711"
