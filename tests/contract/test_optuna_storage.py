"""Optuna's own conformance suite for storages, on every database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from optuna.testing.pytest_storages import StorageTestCase

from hpsearch.bridges.optuna.storage import StudyStorage
from hpsearch.store.store import Store


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """One database for all tests here: each empties it before it begins."""
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("optuna")
        url = f"sqlite:///{folder}/study.db"
    else:
        new_url: Callable[[], str] = request.getfixturevalue("new_postgresql_url")
        url = new_url()
    store = Store.open(url)
    yield store
    store.close()


@pytest.fixture
def storage(shared_store: Store) -> StudyStorage:
    for study in shared_store.studies():
        shared_store.delete_study(study.id)
    return StudyStorage(shared_store)


class TestStudyStorage(StorageTestCase):
    """All that Optuna asks of a storage."""
