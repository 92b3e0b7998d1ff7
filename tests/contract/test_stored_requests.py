"""Requests in the database: anybody adds one, only the study's driver answers it."""

from contextlib import closing

import pytest

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Request, StudyRecord, Trial
from hpsearch.errors import StudyNotFound
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store

HOSTILE = "ann'; DROP TABLE trials; -- \0 \ud800"


def request(**content: object) -> Request:
    return Request(0, RequestKind.PROPOSE, dict(content), HOSTILE, created=5.0)


def test_a_request_waits_until_its_answer_is_committed(database_url):
    with closing(Store.open(database_url)) as store:
        study = store.create_study(StudyRecord(0, "flowers", "study: flowers\n"))
        other = store.create_study(StudyRecord(0, "trees", "study: trees\n"))
        first = store.add_request("flowers", request(params={"lr": 0.1, "kind": None}, why=""))
        second = store.add_request("flowers", request(params={}))
        asked = store.waiting(study.id)
        assert [each.id for each in asked] == [first, second]
        assert asked[0].content == {"params": {"lr": 0.1, "kind": None}, "why": ""}
        assert asked[0].kind is RequestKind.PROPOSE
        assert store.waiting(other.id) == []
        asked[0].handled, asked[0].trial = 6.0, 0
        asked[1].handled, asked[1].refused = 6.0, "no"
        trial = Trial(0, State.QUEUED, {"lr": 0.1})
        store.commit(study.id, Changes(trials=[trial], requests=asked))
        assert store.waiting(study.id) == []
        assert store.find_request(first).trial == 0
        assert store.find_request(second).refused == "no"
        with store.reading() as connection:
            assert violations(connection) == []


def test_every_write_of_a_driver_says_whether_its_study_is_asked(database_url):
    with closing(Store.open(database_url)) as store:
        store.create_study(StudyRecord(0, "trees", ""))
        study = store.create_study(StudyRecord(0, "flowers", ""))
        lease = store.acquire(study.id, "driver", 60.0)

        def is_asked() -> bool:
            renewed = store.renew(lease, 60.0)
            written = store.commit(study.id, Changes(study=study), lease)
            assert renewed.has_requests == written.has_requests
            return written.has_requests

        store.add_request("trees", request())
        for _ in range(4):
            assert not is_asked()
            store.add_request("flowers", request())
            assert is_asked()
            (asked,) = store.waiting(study.id)
            asked.handled = 6.0
            store.commit(study.id, Changes(requests=[asked]), lease)


def test_the_requests_of_a_study_go_with_it_and_nothing_is_asked_of_one_that_is_not_there(
    database_url,
):
    with closing(Store.open(database_url)) as store:
        study = store.create_study(StudyRecord(0, "flowers", ""))
        store.add_request("flowers", request())
        store.delete_study(study.id)
        assert store.waiting(study.id) == []
    with closing(Store.open(database_url)) as store, pytest.raises(StudyNotFound):
        store.add_request("flowers", request())
