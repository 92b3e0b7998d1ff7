"""Numbers, durations and lines as people read them."""

import math

import pytest

from hpsearch.domain.numbers import cell, count, duration, first_line, number, pairs, size


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((None, "–"), (0, "0"), (0.0, "0"), (3.0, "3"), (-2.0, "-2"), (123456789, "123456789")),
        *((16.0, "16"), (0.123456, "0.1235"), (0.00031234, "0.0003123"), (1.23456e-7, "1.235e-07")),
        *((12.3456, "12.35"), (1234.567, "1235"), (1.5e20, "1.5e+20")),
        *((math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")),
    ],
)
def test_numbers_have_four_digits_that_count(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        *(
            (None, "–"),
            (0, "0 s"),
            (0.25, "0.2 s"),
            (4.21, "4.2 s"),
            (9.96, "10 s"),
            (59.4, "59 s"),
        ),
        *((59.6, "1 min"), (200, "3 min 20 s"), (3600, "1 h"), (7500, "2 h 5 min")),
        (86400 * 3 + 3600 * 4, "3 d 4 h"),
    ],
)
def test_durations_have_two_units(seconds, shown):
    assert duration(seconds) == shown


def test_parameters_are_written_as_in_a_study_file():
    assert (
        pairs({"lr": 3e-4, "lora": True, "opt": "adamw", "clip": None})
        == "lr=0.0003 lora=true opt=adamw clip=–"
    )
    assert cell(False) == "false"


def test_counting():
    assert (count(1, "trial"), count(2, "trial"), count(0, "trial")) == (
        "1 trial",
        "2 trials",
        "0 trials",
    )


def test_a_traceback_is_told_by_its_last_line_and_other_errors_by_their_first():
    assert (
        first_line("Traceback (most recent call last):\n  File ...\nValueError: no\n")
        == "ValueError: no"
    )
    assert first_line("out of memory\nmore") == "out of memory"
    assert first_line(None) == "–"
    assert len(first_line("x" * 1000)) == 200


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        *((0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_567_890, "1.23 GB")),
        (5 * 10**18, "5e+03 PB"),
    ],
)
def test_sizes_have_the_unit_that_suits_them(amount, shown):
    assert size(amount) == shown
