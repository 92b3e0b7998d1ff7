"""Who holds a lease: only a process that certainly runs no more is taken for dead."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from hpsearch.domain.records import StudyRecord
from hpsearch.errors import StudyHeld
from hpsearch.store import owners
from hpsearch.store.owners import Machine, is_dead, shown, this_process
from hpsearch.store.reading.queries import only_study
from hpsearch.store.store import Store
from hpsearch.study_run.ownership import owning, refuse_if_held
from support.running.leases import let_pass

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
IN_OWN_NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with closing(Store.open(sqlite_url)) as opened:
        opened.create_study(StudyRecord(0, "s", ""))
        yield opened


@contextmanager
def held_by_another(store: Store, *before: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that holds the lease, and its name as an owner."""
    command = [*before, sys.executable, "-c", HOLD, store.url]
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


def test_readings_name_no_driver_that_has_died_though_its_lease_runs_on(store: Store) -> None:
    with held_by_another(store) as (process, owner):
        assert driver_of(store) == shown(owner)
        process.kill()
        process.wait()
        assert driver_of(store) is None
        holder = store.holder("s")
        assert holder is not None
        assert holder.live


def interrupted_in_a_transaction(store: Store, left: list[AbstractContextManager[Any]]) -> None:
    """Own the study, and end in the middle of a transaction, which is `left` open."""
    with store.reading() as connection:
        record = StudyRecord(only_study(connection).id, "s", "")
    with owning(store, record, 600.0):
        left.append(store._database.transaction("write"))
        left[0].__enter__()
        raise KeyboardInterrupt


def test_a_lease_is_given_back_though_its_owner_ended_in_the_middle_of_a_transaction(
    store: Store,
) -> None:
    left: list[AbstractContextManager[Any]] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_in_a_transaction(store, left)
    assert store.holder("s") is None
    left[0].gen.close()  # type: ignore[attr-defined]  # as the interpreter does, sooner or later
    assert driver_of(store) is None


def take_over(store: Store) -> None:
    refuse_if_held(store, "s")
    with owning(store, store.find_study("s"), 60.0):
        pass


def own_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    return (
        subprocess.run([*IN_OWN_NAMESPACE, "true"], capture_output=True, check=False).returncode
        == 0
    )


def test_a_study_whose_driver_was_killed_here_is_free_at_once(store: Store) -> None:
    with held_by_another(store) as (process, owner):
        with pytest.raises(StudyHeld, match=re.escape(f"driven by {shown(owner)} since")):
            take_over(store)
        process.send_signal(signal.SIGKILL)
        process.wait()
        take_over(store)


@LINUX
@pytest.mark.skipif(not own_namespaces(), reason="needs the right to make PID namespaces")
def test_a_driver_in_another_container_with_the_same_host_name_keeps_its_study(
    store: Store,
) -> None:
    with held_by_another(store, *IN_OWN_NAMESPACE) as (process, owner):
        assert shown(owner).endswith(f"@{socket.gethostname()}:1"), (
            "the first process of its namespace"
        )
        with pytest.raises(StudyHeld):
            take_over(store)
        process.kill()
        process.wait()
        with pytest.raises(StudyHeld):  # which nobody can know from here
            take_over(store)
        let_pass(store, 600.0)
        take_over(store)


@LINUX
@pytest.mark.skipif(not own_namespaces(), reason="needs the right to make PID namespaces")
def test_a_driver_is_not_taken_for_dead_from_within_another_container(store: Store) -> None:
    look = "import sys; from hpsearch.store.owners import is_dead; print(is_dead(sys.argv[1]))"
    with held_by_another(store) as (_, owner):
        seen = subprocess.check_output(
            [*IN_OWN_NAMESPACE, sys.executable, "-c", look, owner], text=True
        )
    assert seen.strip() == "False"


@LINUX
def test_a_process_that_was_given_the_id_of_a_dead_one_is_not_taken_for_it() -> None:
    mine = this_process()
    assert not is_dead(mine)
    assert is_dead(mine.rpartition("/")[0] + "/1"), "no process of today started with the machine"


def gone_on(machine: Machine, started: str) -> str:
    """A process that has ended, as an owner on a machine."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    return f"ada@{machine.host}:{ended.pid}#{machine.boot}/{machine.space}/{started}"


@LINUX
@pytest.mark.parametrize("other", [{"host": "elsewhere"}, {"boot": "an-0ther"}, {"space": "17"}])
def test_whether_a_process_lives_is_not_known_elsewhere(other: dict[str, str]) -> None:
    owner = gone_on(Machine.this(), "88211")
    assert is_dead(owner)
    assert not is_dead(owner, replace(Machine.this(), **other))


@pytest.mark.parametrize(
    "owner", [f"ada@{socket.gethostname()}:4194303", "host:123", "driver", "", "a@b:1#", "#/"]
)
def test_an_owner_that_says_too_little_is_never_taken_for_dead(owner: str) -> None:
    """Such as those of older versions: their leases end by themselves."""
    assert not is_dead(owner)
    assert shown(owner) == owner


@LINUX
def test_the_processes_of_another_namespace_are_not_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where /proc is that of another one, ids in it are other processes'."""
    owner = this_process()
    here = Machine.this()
    monkeypatch.setattr(owners.os, "getpid", lambda: 1)
    assert owners._started(1) is None
    assert not is_dead(owner, here)


def test_a_user_without_a_name_is_shown_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(owners.os, "getuid", lambda: 3_999_999)  # nobody has it
    assert shown(this_process()) == f"3999999@{socket.gethostname()}:{os.getpid()}"


def test_people_see_user_host_and_process() -> None:
    assert re.fullmatch(r".+@.+:\d+", shown(this_process()))
    assert shown("a#b@gpu-1:4711#3f2a-9c/4026531836/88211") == "a#b@gpu-1:4711"


def test_a_system_that_does_not_tell_when_a_process_started_knows_only_who_is_gone() -> None:
    """Such as macOS."""
    here = Machine("mac", "B007-1D", "0")
    mine = f"ada@mac:{os.getpid()}#B007-1D/0/"
    assert not is_dead(mine, here)
    assert is_dead(gone_on(here, ""), here)
