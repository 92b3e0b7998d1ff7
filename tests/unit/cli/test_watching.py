"""`--watch`: a result shown again as it changes, until no driver works on its study."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from hpsearch.cli.results import watching
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.store.leases import Lease
from hpsearch.store.owners import this_process
from hpsearch.store.store import Store


@pytest.mark.parametrize("command", [("status",), ("best",), ("trials",), ("show", "2")])
def test_a_study_that_nobody_drives_is_shown_once(run, flowers, command):
    word, *number = command
    said = run(word, flowers, *number, "--watch", "--format", "json")
    assert said.code == 0
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert len(lines) == (6 if word == "trials" else 1)
    table = run(word, flowers, *number, "--watch")
    assert table.code == 0
    assert table.out


def test_a_format_that_has_no_lines_is_refused(run, flowers):
    said = run("trials", flowers, "--watch", "--format", "csv")
    assert said.code == 2
    assert "--watch does not print csv" in said.err


def test_only_what_has_changed_is_printed_again(run, save, sqlite_url, monkeypatch):
    save("garden", [Trial(n, State.PAUSED, {"lr": 0.1}, value=0.5) for n in range(3)])
    with closing(Store.open(sqlite_url)) as store:
        study = store.load("garden").study
        lease = store.acquire(study.id, this_process(), 60.0)
        looks = iter(range(100))
        monkeypatch.setattr(watching.time, "sleep", lambda _: _change(store, lease, next(looks)))
        said = run("trials", "garden", "--watch", "--format", "json")
    printed = [json.loads(line) for line in said.out.splitlines()]
    assert [(each["number"], each["value"]) for each in printed] == [
        (0, 0.5), (1, 0.5), (2, 0.5), (1, 0.75),
    ]  # fmt: skip


def _change(store: Store, lease: Lease, look: int) -> None:
    """One trial changes after the first look, and the driver leaves after the third."""
    if look == 0:
        changed = Trial(1, State.PAUSED, {"lr": 0.1}, value=0.75)
        store.commit(lease.study_id, Changes(trials=[changed]), lease)
    elif look == 2:
        store.release(lease)
