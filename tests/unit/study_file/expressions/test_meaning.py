"""Expressions of a study file: what they mean for a configuration, and what makes no sense."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.study_file.expressions.meaning import Expression, Values
from hpsearch.study_file.expressions.parsing import ExpressionError

KNOWN: dict[str, Values] = {
    "heads": None,
    "width": None,
    "optimizer": ("adam", "sgd"),
    "batch": (16, 32),
    "lora": (True, False),
    "mixed": ("auto", 8),
}
NUMBERS = st.integers(-(2**40), 2**40) | st.floats(-1e9, 1e9)


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("heads * 8 <= width", {"heads": 8, "width": 64}, True),
        ("heads * 8 <= width", {"heads": 9, "width": 64}, False),
        ("width % heads == 0", {"heads": 3, "width": 64}, False),
        ("64 - 2 * heads >= (width + 4) / 2", {"heads": 8, "width": 92}, True),
        ("heads -1 == +2", {"heads": 3}, True),
        ("-heads < -width + 1", {"heads": 8, "width": 8}, True),
        ("width - heads - 1 == 0", {"heads": 2, "width": 3}, True),
        ("12 / 2 * 3 = 18", {}, True),
        ("`learning rate` < eval/f1", {"learning rate": 0.1, "eval/f1": 0.2}, True),
        ("optimizer == 'adam' and width > 64", {"optimizer": "adam", "width": 65}, True),
        ("optimizer == 'adam' and width > 64", {"optimizer": "sgd", "width": 65}, False),
        ("not (lora = true or heads in (1, width))", {"lora": False, "heads": 2}, True),
        ("heads not in (1, width / 2)", {"heads": 2, "width": 4}, False),
        ("heads is null", {}, True),
        ("heads + 1 is not null", {"heads": 1}, True),
        ("heads < 3", {}, False),
        ("heads != 3", {}, True),
        ("heads + 1 < 3", {"heads": "auto"}, False),
        ("heads / width < 3", {"heads": 1, "width": 0}, False),
        ("lora == 1", {"lora": True}, False),
        ("optimizer < 'b'", {"optimizer": "adam"}, True),
    ],
)
def test_an_expression_means_what_it_says(text, params, expected):
    assert Expression(text).holds(params) is expected


@given(NUMBERS, NUMBERS, NUMBERS)
def test_arithmetic_is_that_of_python(a, b, c):
    params = {"a": a, "b": b, "c": c, "found": a - b * (c + 2)}
    assert Expression("a - b * (c + 2) == found").holds(params)
    assert Expression("a < b or a >= b").holds(params)


def test_the_order_of_terms_does_not_count_on_a_grid():
    expression = Expression("a + b + c == 1 and a + b + c <= 1 and a + b + c >= 1")
    assert 0.7 + 0.2 + 0.1 != 1
    assert expression.holds({"a": 0.7, "b": 0.2, "c": 0.1})
    assert not expression.holds({"a": 0.7, "b": 0.2, "c": 0.2})


def test_settings_stand_for_their_values_and_are_not_parameters():
    expression = Expression("heads * 8 <= hidden").given({"hidden": 64})
    assert expression.names == ("heads",)
    assert expression.holds({"heads": 8})
    assert not expression.holds({"heads": 9})


def test_an_expression_can_be_sent_to_another_process():
    expression = Expression("heads * 8 <= width")
    again = pickle.loads(pickle.dumps(expression))
    assert again == expression
    assert not again.holds({"heads": 9, "width": 64})


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("heads < widht", "did you mean width?", "widht"),
        ("optimizer == adam", "put text in quotes: 'adam'", "adam"),
        ("width-8 < 3", "put blanks around - and /", "width-8"),
        ("optimizer < 3", "'optimizer' is text, never a number", "3"),
        ("optimizer == lora", "'optimizer' is text, never true or false", "lora"),
        ("optimizer == 'admaw'", "did you mean adam?", "'admaw'"),
        ("heads in (1, 'two')", "'heads' is a number, never text", "'two'"),
        ("batch == 48", "'batch' is never 48", "48"),
        ("optimizer * 2 < 3", "'optimizer' is text, and * takes numbers", "optimizer"),
        ("2 + -lora < 3", "'lora' is true or false, and - takes numbers", "lora"),
        ("lora < true", "true and false have no order", "true"),
    ],
)
def test_what_makes_no_sense_is_shown_at_its_place(text, said, at):
    with pytest.raises(ExpressionError) as caught:
        Expression(text).check(KNOWN, "parameter")
    error = caught.value
    assert said in f"{error.what}; {error.hint}"
    written, caret = error.excerpt.splitlines()
    assert written[caret.index("^") :].startswith(at)


@pytest.mark.parametrize("text", ["mixed * 2 > 3", "mixed == 'auto'", "batch == 16", "batch < 48"])
def test_what_some_values_fit_is_right(text):
    Expression(text).check(KNOWN, "parameter")


def test_a_number_that_cannot_be_read_is_refused():
    with pytest.raises(ExpressionError, match="'8x' is not a number"):
        Expression("heads < 8x")
    with pytest.raises(ExpressionError, match="nested too deep"):
        Expression("not " * 5000 + "heads < 8")
