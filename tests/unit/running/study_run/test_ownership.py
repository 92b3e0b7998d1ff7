"""The owner of a study, and requests that come as it takes the study over."""

from contextlib import closing
from typing import Any

from hpsearch.domain.records import StudyRecord
from hpsearch.running.study_run.ownership import owning
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store


def test_a_stop_that_is_asked_for_in_the_moment_of_owning_is_not_forgotten(sqlite_url, monkeypatch):
    acquire = Store.acquire

    def acquire_and_be_asked(store: Store, *arguments: Any) -> Lease:
        lease = acquire(store, *arguments)
        with closing(Store.open(sqlite_url)) as of_another:
            of_another.request_stop("flowers")
        return lease

    monkeypatch.setattr(Store, "acquire", acquire_and_be_asked)
    with closing(Store.open(sqlite_url)) as store:
        record = store.create_study(StudyRecord(0, "flowers", ""))
        with owning(store, record, 60.0) as lease:
            assert store.renew(lease, 60.0).stop_requested is True
