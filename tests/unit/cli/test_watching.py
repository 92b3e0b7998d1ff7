"""`status --watch`: shown again as the study changes, until no driver works on it."""

from __future__ import annotations

import json
from contextlib import closing

from hpsearch.cli.results import listing as status
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.store.leases import Lease
from hpsearch.store.owners import this_process
from hpsearch.store.store import Store


def test_a_study_that_nobody_drives_is_shown_once(run, flowers):
    said = run("status", flowers, "--watch", "--format", "json")
    assert said.code == 0
    assert len(said.out.splitlines()) == 1
    assert json.loads(said.out)["study"] == flowers
    table = run("status", flowers, "--watch")
    assert table.code == 0
    assert table.out


def test_a_format_that_has_no_lines_is_refused(run, flowers):
    said = run("status", flowers, "--watch", "--format", "yaml")
    assert said.code == 2
    assert "--watch does not print yaml" in said.err


def test_only_what_has_changed_is_printed_again(run, save, sqlite_url, monkeypatch):
    save("garden", [Trial(n, State.PAUSED, {"lr": 0.1}, value=0.5) for n in range(3)])
    with closing(Store.open(sqlite_url)) as store:
        study = store.load("garden").study
        lease = store.acquire(study.id, this_process(), 60.0)
        looks = iter(range(100))
        monkeypatch.setattr(status.time, "sleep", lambda _: _change(store, lease, next(looks)))
        said = run("status", "garden", "--watch", "--format", "json")
    printed = [json.loads(line) for line in said.out.splitlines()]
    found = [(each["trials"], each["driver"] is None) for each in printed]
    assert found == [
        ({"paused": 3}, False),
        ({"complete": 1, "paused": 2}, False),
        ({"complete": 1, "paused": 2}, True),
    ]


def _change(store: Store, lease: Lease, look: int) -> None:
    """One trial changes after the first look, and the driver leaves after the third."""
    if look == 0:
        changed = Trial(1, State.COMPLETE, {"lr": 0.1}, value=0.75)
        store.commit(lease.study_id, Changes(trials=[changed]), lease)
    elif look == 2:
        store.release(lease)
