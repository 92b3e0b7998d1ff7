"""The language of --where and --sort: what it reads, and how it says what it cannot."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpsearch.errors import FilterError
from hpsearch.store.reading.filters import (
    Absent,
    Among,
    Joined,
    Not,
    Order,
    Ordered,
    parse_sort,
    parse_where,
)

WORDS = [
    *(
        "value",
        "lr",
        "eval/f1",
        "`odd name`",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "true",
        "false",
        "inf",
        "-inf",
    ),
    *(
        "1",
        "-2.5",
        "1e-4",
        "'text'",
        '"text"',
        "'",
        "=",
        "==",
        "!=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "(",
        ")",
        ",",
        "desc",
    ),
]


def error_of(text: str) -> str:
    with pytest.raises(FilterError) as caught:
        parse_where(text)
    return str(caught.value)


def test_and_binds_closer_than_or() -> None:
    tree = parse_where("a = 1 or b = 2 and c = 3")
    assert isinstance(tree, Joined)
    assert tree.by == "or"
    assert isinstance(tree.parts[1], Joined)
    assert tree.parts[1].by == "and"


def test_parentheses_and_not() -> None:
    tree = parse_where("NOT (a = 1 OR b = 2)")
    assert isinstance(tree, Not)
    assert isinstance(tree.of, Joined)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(
            ("3", 3),
            ("-3", -3),
            ("+3", 3),
            ("1e-4", 1e-4),
            (".5", 0.5),
            ("2.", 2.0),
            ("-1.5E+3", -1500.0),
        ),
        *(("inf", float("inf")), ("-inf", float("-inf")), ("true", True), ("FALSE", False)),
        *(
            ("'it''s'", "it's"),
            ('"a ""b"""', 'a "b"'),
            ("''", ""),
            ("9223372036854775807", 2**63 - 1),
        ),
    ],
)
def test_values_are_read_as_written(written: str, value: object) -> None:
    tree = parse_where(f"x = {written}")
    assert isinstance(tree, Among)
    assert tree.values[0].value == value
    assert type(tree.values[0].value) is type(value)


def test_whole_numbers_too_large_for_a_column_become_floats() -> None:
    tree = parse_where("x = 9223372036854775808")
    assert isinstance(tree, Among)
    assert tree.values[0].value == 2.0**63
    assert isinstance(tree.values[0].value, float)


@pytest.mark.parametrize(("sign", "order"), [("<", "<"), ("<=", "<="), (">", ">"), (">=", ">=")])
def test_orders(sign: str, order: str) -> None:
    tree = parse_where(f"x{sign}1")
    assert isinstance(tree, Ordered)
    assert tree.order is Order(order)


@pytest.mark.parametrize("text", ["x != 1", "x <> 1", "x not in (1)", "not x = 1"])
def test_the_ways_to_say_unequal_mean_the_same(text: str) -> None:
    tree = parse_where(text)
    assert isinstance(tree, Not)
    assert isinstance(tree.of, Among)


def test_null() -> None:
    assert isinstance(parse_where("x is null"), Absent)
    assert isinstance(parse_where("x is not null"), Not)


def test_names_may_have_dots_slashes_dashes_and_anything_in_backticks() -> None:
    tree = parse_where(
        "params.lr = 1 and eval/f1@5 = 1 and top-1 = 1 "
        "and `learning rate` = 1 and `in` = 1 and größe = 1"
    )
    assert isinstance(tree, Joined)
    names = [part.name.text for part in tree.parts if isinstance(part, Among)]
    assert names == ["params.lr", "eval/f1@5", "top-1", "learning rate", "in", "größe"]


def test_sorting() -> None:
    keys = parse_sort("value desc, lr, `odd name` ASC")
    assert [(k.name.text, k.descending) for k in keys] == [
        ("value", True),
        ("lr", False),
        ("odd name", False),
    ]


def test_an_error_shows_the_place() -> None:
    assert error_of("lr < and value = 1").splitlines()[:3] == [
        "--where: expected a value, found 'and'",
        "    lr < and value = 1",
        "         ^",
    ]


def test_the_caret_stays_in_sight_in_a_long_expression() -> None:
    text = " and ".join(["learning_rate < 1"] * 20 + ["oops"] + ["value = 1"] * 20)
    _, excerpt, caret, *_ = error_of(text).splitlines()
    assert len(excerpt) < 120
    assert excerpt[caret.index("^") :].startswith("and value = 1")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("state = complete", "'complete'"),
        ("x = null", "is null"),
        ("x = nan", "is null"),
        ("3 < x", "write the name on the left"),
        ("in = 3", "`in`"),
        ("lora", "lora = true"),
        ("a = 1 && b = 2", "and, or"),
        ("x = 'open", "never closed"),
        ("x = 1.2.3", "is not a number"),
        ("x in ()", "expected a value"),
        ("(x = 1", "expected ')'"),
        ("x = 1 y = 2", "'and', 'or' or the end"),
        ("", "expected a name, found the end"),
        ("(" * 60 + "x = 1", "nested more than 50 deep"),
        ("not " * 60 + "x = 1", "nested more than 50 deep"),
        ("x = 1 or " * 1000 + "x = 1", "4000 is the most"),
        ("x = 'a\0b'", "cannot be printed or stored"),
    ],
)
def test_errors_say_what_to_write(text: str, told: str) -> None:
    assert told in error_of(text)


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join)))
@example("x = " + "9" * 4000)
@example("x = '\ud800'")
@example("`" * 3)
def test_nothing_but_a_filter_error_ever_comes_of_any_text(text: str) -> None:
    for parse in (parse_where, parse_sort):
        with contextlib.suppress(FilterError):
            parse(text)
