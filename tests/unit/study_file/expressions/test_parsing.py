"""The language of expressions: what it reads, and how it says what it cannot."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpsearch.study_file.expressions.parsing import ExpressionError, Term, keys_of, parsed

WRITTEN = """\
value lr eval/f1 and or not in is null true false inf -inf 1 -2.5 1e-4 'text' "text" ' = == != <> \
< <= > >= ( ) , desc + - * / % between like 'x%' not _ \n"""
WORDS = [*WRITTEN.split(), "`odd name`"]


def error_of(text: str, read: Callable[[str], object] = parsed) -> str:
    with pytest.raises(ExpressionError) as caught:
        read(text)
    error = caught.value
    return "\n".join([error.what, error.excerpt, error.hint or ""])


def shape(part: Term) -> str:
    """An expression as its rules, a leaf as it is written."""
    if part.rule == "leaf":
        return part.written
    return f"{part.rule}{part.written}({', '.join(map(shape, part.parts))})"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a = 1 or b = 2 and c = 3", "any(among(a, 1), all(among(b, 2), among(c, 3)))"),
        ("NOT (a = 1 OR b = 2)", "opposite(any(among(a, 1), among(b, 2)))"),
        ("not a = 1 and b = 2", "all(opposite(among(a, 1)), among(b, 2))"),
        ("a < b + c * -d", "ordered<(a, sum+(b, sum*(c, sum-(d))))"),
        ("a - b - c >= -1", "ordered>=(sum-(sum-(a, b), c), -1)"),
        ("1 < a <= b", "all(ordered<(1, a), ordered<=(a, b))"),
        ("a between 1 and 2", "all(ordered>=(a, 1), ordered<=(a, 2))"),
        ("a not\nbetween x and y", "opposite(all(ordered>=(a, x), ordered<=(a, y)))"),
        ("a Like 'b%' or a NOT LIKE''", "any(like(a, 'b%'), opposite(like(a, '')))"),
        ("between = 1 and like like 'x'", "all(among(between, 1), like(like, 'x'))"),
        ("a in (1) and b not in(c,2)", "all(among(a, 1), opposite(among(b, c, 2)))"),
        ("a Is Null and b is  not null", "all(absent(a), opposite(absent(b)))"),
        (
            "a <> 1 or a != 2 or a == 3",
            "any(opposite(among(a, 1)), opposite(among(a, 2)), among(a, 3))",
        ),
        (" ((( a )) = (1)) ", "among(a, 1)"),
    ],
)
def test_an_expression_has_the_shape_that_it_is_read_in(text, read):
    assert shape(parsed(text)) == read


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
    _, leaf = parsed(f"x = {written}").leaves
    read = leaf.value
    assert read == value
    assert type(read) is type(value)


def test_names_may_have_dots_slashes_dashes_and_anything_in_backticks():
    names = ["params.lr", "eval/f1@5", "top-1", "`learning rate`", "`in`", "größe"]
    found = parsed(" and ".join(f"{name} = 1" for name in names)).leaves
    assert [leaf.name for leaf in found if leaf.name] == [name.strip("`") for name in names]


def test_sorting():
    keys = [(leaf.name, *rest) for leaf, *rest in keys_of("value desc, desc , `odd name` ASC")]
    assert keys == [("value", True), ("desc", False), ("odd name", False)]
    for text, told in (
        ("", "expected a name, found the end"),
        ("a,", "expected a name, found the end"),
        ("a b", "expected ',', 'asc', 'desc' or the end, found 'b'"),
        ("a desc desc", "expected ',', 'asc', 'desc' or the end, found 'desc'"),
    ):
        assert told in error_of(text, lambda text: list(keys_of(text)))


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
        ("x = null", "is null"),
        ("x = nan", "is null"),
        ("in = 3", "`in`"),
        ("lora", "= true"),
        ("a = 1 && b = 2", "and, or"),
        ("x = 'open", "never closed"),
        ("x in ()", "expected a value"),
        ("(x = 1", "expected ')'"),
        ("x = 1 y = 2", "'and', 'or' or the end"),
        ("", "expected a name, found the end"),
        ("x * 2", "expected a comparison"),
        ("x like 3", "like 'ad%'"),
        ("x between 1 or 2", "between 1 and 2"),
        ("x in 3", "in (1, 2)"),
        ("x = not y", "expected a value, found 'not'"),
        ("x = (y = 1)", "expected a value"),
        ("(x = 1, y = 2)", "expected a comparison"),
        ("x = 1, y = 2", "the end, found ','"),
        ("x = 1)", "the end, found ')'"),
        ("x == null", "is null"),
        ("or < 3", "`or`"),
        ("a + < 3", "expected a value"),
        ("(a + b", "expected a comparison"),
        ("a ** 2 < 3", "expected a value, found '*'"),
        ("a < 3 && b < 3", "and, or"),
        ("__import__('os') = 1", "expected a comparison, found '('"),
        ("a[0] = 1", "'[' means nothing here"),
        ("a if b else c", "expected a comparison, found 'if'"),
        ("lambda: 1", "found '1'"),
        ("a := 1", "':' means nothing here"),
        ("a = 1 # b", "'#' means nothing here"),
        ("(" * 300 + "a = 1" + ")" * 300, "nested too deep"),
        ("not " * 5000 + "a = 1", "nested too deep"),
        ("- " * 5000 + "a = 1", "nested too deep"),
        (" + ".join(["a"] * 5000) + " < 3", "nested too deep"),
    ],
)
def test_errors_say_what_to_write(text, told):
    assert told in error_of(text)


def test_names_of_python_are_only_names():
    text = "__class__ = 1 and None < True and `__import__('os')` in (lambda, eval)"
    found = [leaf.value if leaf.name is None else leaf.name for leaf in parsed(text).leaves]
    assert found == ["__class__", 1, "None", True, "__import__('os')", "lambda", "eval"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join)))
@example("x = " + "9" * 4000)
@example("x = '\ud800'")
@example("`" * 3)
def test_nothing_but_an_expression_error_ever_comes_of_any_text(text):
    for read in (parsed, lambda text: list(keys_of(text))):
        with contextlib.suppress(ExpressionError):
            read(text)
