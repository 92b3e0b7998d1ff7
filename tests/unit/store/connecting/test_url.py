"""Database URLs: which are taken, and that no password shows."""

import pytest

from hpsearch.errors import StoreUnreachable, UserError
from hpsearch.store.connecting.url import display, parse_url
from hpsearch.store.store import Store


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql_is_reached_through_psycopg_3(scheme):
    assert parse_url(f"{scheme}://someone@host/db").drivername == "postgresql+psycopg"


def test_a_file_is_the_same_wherever_the_program_goes_next_and_passwords_do_not_show(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert parse_url("sqlite:///study.db").database == f"{tmp_path}/study.db"
    shown = display(
        parse_url("postgresql://user:s3cret@host/db?password=s3cret&sslpassword=s3cret")
    )
    assert shown == "postgresql://user:***@host/db?password=hidden&sslpassword=hidden"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://host/db", "mysql are not supported"),
        ("hpsearch.db", "not given as a database URL"),
        ("postgresql://user:secret@host:port/db", "not given as a database URL"),
        ("sqlite://hpsearch.db", "sqlite:///hpsearch.db"),
    ],
)
def test_other_urls_are_refused_with_the_two_that_are_taken(url, told):
    with pytest.raises(UserError, match=told) as caught:
        parse_url(url)
    assert "sqlite:///" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_server_that_does_not_answer_is_told_without_the_password():
    with pytest.raises(StoreUnreachable) as caught:
        Store.open("postgresql://user:s3cret@127.0.0.1:1/db")
    assert "postgresql://user:***@127.0.0.1:1/db" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "refused" in str(caught.value)
