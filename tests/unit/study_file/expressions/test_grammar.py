"""The language of expressions: what it reads, and how it says what it cannot."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpsearch.study_file.expressions.grammar import ExpressionError, Start, parsed, value_of

WRITTEN = """\
value lr eval/f1 and or not in is null true false inf -inf 1 -2.5 1e-4 'text' "text" ' = == != <> \
< <= > >= ( ) , desc"""
WORDS = [*WRITTEN.split(), "`odd name`"]


def error_of(text: str, start: Start = "where") -> str:
    with pytest.raises(ExpressionError) as caught:
        parsed(text, start)
    error = caught.value
    return "\n".join([error.what, error.excerpt, error.hint or ""])


def test_and_binds_closer_than_or_and_parentheses_and_not_closer_still():
    (either,) = parsed("a = 1 or b = 2 and c = 3", "where").children
    assert [len(both.children) for both in either.children] == [1, 2]
    (either,) = parsed("NOT (a = 1 OR b = 2)", "where").children
    (opposite,) = either.children[0].children
    assert opposite.data == "opposite"
    assert len(opposite.children[1].children) == 2


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("3", 3), ("-3", -3), ("+3", 3), ("1e-4", 1e-4)),
        *((".5", 0.5), ("2.", 2.0), ("-1.5E+3", -1500.0)),
        *(("inf", float("inf")), ("-inf", float("-inf")), ("true", True), ("FALSE", False)),
        *(("'it''s'", "it's"), ('"a ""b"""', 'a "b"'), ("''", "")),
        *(("9223372036854775807", 2**63 - 1), ("9223372036854775808", 2.0**63)),
    ],
)
def test_values_are_read_as_written(written, value):
    (token,) = next(parsed(f"x = {written}", "where").find_data("value")).children
    read = value_of(token)
    assert read == value
    assert type(read) is type(value)


def test_names_may_have_dots_slashes_dashes_and_anything_in_backticks():
    names = ["params.lr", "eval/f1@5", "top-1", "`learning rate`", "`in`", "größe"]
    found = parsed(" and ".join(f"{name} = 1" for name in names), "where").find_data("name")
    assert sorted(str(name.children[0]) for name in found) == sorted(names)


def test_sorting():
    keys = parsed("value desc, lr, `odd name` ASC", "sort").children
    assert [str(key.children[1]) for key in keys] == ["desc", "None", "ASC"]


def test_an_error_shows_the_place():
    assert error_of("lr < and value = 1").splitlines()[:3] == [
        "expected a value, found 'and'",
        "    lr < and value = 1",
        "         ^",
    ]


def test_the_caret_stays_in_sight_in_a_long_expression():
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
        ("3 < x", "expected a name"),
        ("in = 3", "`in`"),
        ("lora", "= true"),
        ("a = 1 && b = 2", "and, or"),
        ("x = 'open", "never closed"),
        ("x in ()", "expected a value"),
        ("(x = 1", "expected ')'"),
        ("x = 1 y = 2", "'and', 'or' or the end"),
        ("", "expected a name, found the end"),
        ("x * 2 < 3", "only conditions in a study file calculate"),
    ],
)
def test_errors_say_what_to_write(text, told):
    assert told in error_of(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x == null", "is null"),
        ("or < 3", "`or`"),
        ("lora", "= true"),
        ("a <= b <= c", "'and', 'or' or the end"),
        ("a + < 3", "expected a value"),
        ("(a + b", "expected a comparison"),
        ("a ** 2 < 3", "expected a value, found '*'"),
        ("a < 3 && b < 3", "and, or"),
        ("", "expected a value, found the end"),
    ],
)
def test_errors_of_conditions_say_what_to_write(text, told):
    assert told in error_of(text, "condition")


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join)))
@example("x = " + "9" * 4000)
@example("x = '\ud800'")
@example("`" * 3)
def test_nothing_but_an_expression_error_ever_comes_of_any_text(text):
    starts: tuple[Start, ...] = ("where", "sort", "condition")
    for start in starts:
        with contextlib.suppress(ExpressionError):
            parsed(text, start)
