"""PostgreSQL behind PgBouncer, where clients share the sessions of the server: what one leaves on a
session, the next one finds."""

import itertools
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import make_url

import hpsearch
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support.running.postgresql import free_port, pgbouncer
from support.studies.asked import spec_with, work
from support.studies.driven import drive
from support.studies.small import Bowl
from support.studies.small import spec_with as study_of

NUMBERS = itertools.count()
SESSION = """
SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),
    (SELECT count(*) FROM pg_prepared_statements)
"""


@pytest.fixture
def pooled(postgresql_server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty database through a pooler in a mode, with one session for all."""
    name = f"pooled_{next(NUMBERS)}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    server = make_url(postgresql_server).set(database=name)
    with pgbouncer(server, free_port(), request.param) as url:
        yield url


@pytest.mark.parametrize("pooled", ["transaction", "session"], indirect=True)
def test_a_pooler_may_stand_before_the_server_and_finds_its_sessions_as_they_were(pooled, run):
    spec = study_of(study="driven", budget={"trials": 8, "per_trial": {"epochs": 9}})
    drive(pooled, spec, Bowl(), workers=2, stop_after=9)
    drive(pooled, spec, Bowl(), workers=2, resume=True)
    asked = spec_with(study="asked", budget={"trials": 4, "per_trial": {"epochs": 9}})
    with hpsearch.create(pooled, asked) as study:
        work(study)
    with closing(Store.open(pooled)) as store, store.reading() as connection:
        assert violations(connection) == []
    for command in ("best driven", "trials asked", "ls"):
        code, _, said = run(*command.split(), "--storage", pooled)
        assert code == 0, said
    with psycopg.connect(pooled, prepare_threshold=None, autocommit=True) as connection:
        assert connection.execute(SESSION).fetchall() == [("0", "0", 0)]


@pytest.mark.parametrize("pooled", ["transaction"], indirect=True)
def test_clients_take_turns_on_one_session(pooled):
    with closing(Store.open(pooled)) as one, closing(Store.open(pooled)) as other:
        for _ in range(12):
            assert one.study_names() == other.study_names() == []


@pytest.mark.parametrize("pooled", ["statement"], indirect=True)
def test_a_pooler_of_statements_is_refused_by_name(pooled, run):
    code, _, said = run("ls", "--storage", pooled)
    assert code == 2
    assert "PgBouncer pools statements" in said
    assert "pool_mode = transaction" in said


@pytest.mark.parametrize("option", ["", "&prepare_threshold=0"])
def test_no_statement_is_prepared_whatever_the_url_says(postgresql_url, option):
    with closing(Store.open(f"{postgresql_url}{option}")) as store:
        store.study_names()
        with store.reading() as connection:
            prepared = connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements")
            assert prepared.scalar_one() == 0
