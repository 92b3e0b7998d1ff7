"""The JSON that databases are given: whatever goes in comes out, and every database accepts it."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpsearch.store.codec import decode, encode
from support.thoroughness import examples

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda parts: (
        st.lists(parts)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="$\0", exclude_categories=["Cs"])), parts
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(200))
@given(anything)
def test_whatever_goes_in_comes_out(value):
    assert decode(encode(value)) == value


@settings(max_examples=examples(200))
@given(anything)
def test_the_text_is_strict_json_in_utf_8_without_nul(value):
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = encode(value)
    json.loads(text, parse_constant=refuse)
    assert "\0" not in text.encode().decode()
    assert r"\u0000" not in text.replace(r"\\", "")


def test_the_order_of_keys_is_kept_and_what_is_not_a_number_comes_back_so():
    assert math.isnan(decode(encode({"loss": math.nan}))["loss"])
    assert encode([math.inf, -math.inf]) == '[{"$float":"inf"},{"$float":"-inf"}]'
    assert list(decode(encode({"b": 1, "a": 2, "aa": math.inf}))) == ["b", "a", "aa"]


def test_characters_that_no_database_takes_become_escapes():
    assert decode(encode({"a\0b": ["\udc80", "\\u0000"]})) == {"a\\x00b": ["\\udc80", "\\u0000"]}


def test_what_is_no_json_value_or_contains_itself_is_refused_and_named():
    value: list[Any] = []
    value.append(value)
    with pytest.raises(TypeError, match="nested so deep"):
        encode(value)
    with pytest.raises(TypeError, match="of type complex cannot be stored"):
        encode({"z": 1j})


def test_plain_values_are_readable_as_they_are():
    assert (
        encode({"größe": 1.5, "on": True, "tags": ("a", None)})
        == '{"größe":1.5,"on":true,"tags":["a",null]}'
    )


def test_scalars_of_numpy_are_the_numbers_they_hold():
    value = {
        "a": np.float32(0.5),
        "b": np.int64(3),
        "c": np.float32("nan"),
        "d": np.float64(0.1),
        "e": np.bool_(True),
    }
    back = decode(encode(value))
    assert math.isnan(back.pop("c"))
    assert back == {"a": 0.5, "b": 3, "d": 0.1, "e": True}
