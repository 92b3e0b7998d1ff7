"""What is said of a table: what its columns are taken for, which of them give the target away."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trials import tasks

ROWS = 200


def frame(**columns: Any) -> pd.DataFrame:
    """A class that follows from two columns, beside others."""
    rng = np.random.default_rng(0)
    size, colour = rng.normal(50, 10, ROWS).round(2), rng.choice(["red", "blue"], ROWS)
    noise = rng.random(ROWS) < 0.2
    kind = np.where(((size > 50) & (colour == "red")) ^ noise, "a", "b")
    price = (size + 20 * (colour == "red") + rng.normal(0, 9, ROWS)).round(2)
    return pd.DataFrame({"size": size, "colour": colour, **columns, "kind": kind, "price": price})


def remarks(folder: Path, table: pd.DataFrame, **part: Any) -> list[str]:
    """The remarks on the columns of a table, without their place."""
    table.to_csv(folder / "train.csv", index=False)
    plain = {"kind": "tabular", "train": "train.csv", "validation": 0.25, "target": "kind"}
    found: list[str] = []
    assert (
        tasks.inspect({**plain, **part}, folder, lambda *remark: found.append(": ".join(remark)))
        == []
    )
    return [each.removeprefix("task.train: ") for each in found if each.startswith("task.train: ")]


def test_what_the_columns_are_taken_for_is_said_in_one_line(tmp_path):
    named = [f"customer {row}" for row in range(ROWS)]
    (plain,) = remarks(tmp_path, frame(one="same"))
    assert plain == (
        "columns: 2 of numbers (size, price), 1 of classes (colour), 1 left out (one: one value); "
        "the target 'kind' is a class"
    )
    first, *_ = remarks(tmp_path, frame(key=named), target="price", categorical=["colour"])
    assert first == (
        "columns: 1 of numbers (size), 1 of classes (colour), 2 left out (key, kind); "
        "the target 'price' is a quantity"
    )


def every(make: Callable[[int], Any]) -> list[Any]:
    return [make(row) for row in range(ROWS)]


rng = np.random.default_rng(1)
draws = rng.integers(0, 90, ROWS)
AMOUNTS = rng.uniform(1, 99_999, ROWS)
ODD_COLUMNS = {
    "a dash": (every(lambda row: "-" if row == 17 else f"{AMOUNTS[row]:.2f}"),
     "is taken for numbers; what is not one counts as missing, '-' (1 of 200 rows)"),
    "several words": (
        every(lambda row: ("?", "N/A", "inf")[row % 3] if row < 9 else f"{AMOUNTS[row]:.2f}"),
        "what is not one counts as missing, '?', 'N/A', 'inf' (9 of 200 rows)",
    ),
    "codes with letters": (every(lambda row: f"X{row}" if row % 4 == 0 else f"{draws[row]}"),
     "150 of 200 rows are numbers, and others are not ('X0', 'X4', 'X8', 'X12', 'X16', ...)"),
    "thousands": (every(lambda row: f"{AMOUNTS[row]:,.2f}"), "they look like numbers ('"),
    "a currency": (every(lambda row: f"${AMOUNTS[row]:,.0f}"), "they look like numbers ('$"),
    "a currency behind": (every(lambda row: f"{draws[row]} €"), "they look like numbers ('"),
    "a currency by its code": (every(lambda row: f"EUR {draws[row]}.50"), "numbers ('EUR "),
    "negative in brackets": (every(lambda row: f"({draws[row]},000)"), "they look like numbers"),
    "percent": (every(lambda row: f"{draws[row]}%"), "they look like numbers ('"),
    "decimal commas": (every(lambda row: f"{draws[row]},5"),
     "they look like numbers ('42,5'): write them plainly, as 1234.5"),
    "a unit": (every(lambda row: f"{draws[row]} kg"), "they look like numbers ('"),
    "ISO dates": (
        every(lambda row: str(pd.Timestamp("2020-01-01") + pd.Timedelta(days=row))[:10]),
        "is left out: 200 of 200 rows have a text of their own; they look like dates "
        "('2020-01-01'): write them as numbers, such as a year",
    ),
    "dates with points": (every(lambda row: f"{1 + row % 28}.3.2024"), "look like dates ('1.3"),
    "dates with names": (every(lambda row: f"{1 + row % 28} Mar 2024"), "look like dates"),
    "times": (every(lambda row: f"{row % 24:02d}:{row % 60:02d}"), "they look like dates"),
    "keys": (every(lambda row: str(uuid.UUID(int=row * 7919 << 64))),
     "is left out: 200 of 200 rows have a text of their own"),
    "many classes": (every(lambda row: f"street {row * 2 // 3}"),
     "is taken for classes, and has 133 of them in 200 rows"),
    "leading zeros": (every(lambda row: f"{row * 331 % 9999:05d}"),
     "is taken for numbers, and some begin with 0 ('00000'); if they are codes, name it under"),
    "Unnamed: 0": (every(lambda row: row), "every row has another; if it only names the row"),
    "customer_id": (every(lambda row: row * 17 % 9973), "every row has another; if it only names"),
    "spellings": (every(lambda row: ("yes", "Yes", "no")[draws[row] % 3]),
     "has classes that may be one: 'Yes' and 'yes'"),
    "an outlier": (every(lambda row: 1e9 if row == 3 else draws[row]),
     "1 row lies far from the others, which go from 0 to 89 (the farthest is 1e+09); correct it"),
}  # fmt: skip


@pytest.mark.cases(len(ODD_COLUMNS))
@pytest.mark.parametrize("name", ODD_COLUMNS)
def test_an_odd_column_is_named_with_what_is_made_of_it(tmp_path, name):
    values, said = ODD_COLUMNS[name]
    _, found = remarks(tmp_path, frame(**{name: values}))
    assert f"column {name!r}" in found
    assert said in found


OBVIOUS = {
    "fractions": every(lambda row: AMOUNTS[row]),
    "with gaps": every(lambda row: None if row % 7 == 0 else AMOUNTS[row]),
    "words": every(lambda row: ("north", "south", "east")[draws[row] % 3]),
    "true and false": every(lambda row: bool(draws[row] % 2)),
    "0 and 1": every(lambda row: draws[row] % 2),
    "counts": every(lambda row: draws[row]),
    "seats": every(lambda row: f"{'ABCDE'[draws[row] % 5]}{draws[row] % 9}"),
    "grades": every(lambda row: ("A", "A-", "B", "B+")[draws[row] % 4]),
}


@pytest.mark.cases(len(OBVIOUS))
@pytest.mark.parametrize("name", OBVIOUS)
def test_nothing_is_said_of_an_obvious_column(tmp_path, name):
    assert len(remarks(tmp_path, frame(**{name: OBVIOUS[name]}))) == 1


def test_codes_that_are_taken_for_numbers_are_named_together(tmp_path):
    table = frame(region=draws % 4, grade=draws % 5 + 1)
    _, found = remarks(tmp_path, table)
    assert found == (
        "taken for numbers, with few whole ones each: region, grade; if they are codes, name them "
        "under categorical"
    )
    assert len(remarks(tmp_path, table, categorical=["region", "grade", "colour"])) == 1


def test_what_is_stated_is_obvious(tmp_path):
    table = frame(zip=every(lambda row: f"{draws[row]:05d}"), key=every(lambda row: f"key {row}"))
    (found,) = remarks(tmp_path, table, numeric=["size"], categorical=["zip", "key"])
    assert found.startswith("columns: 1 of numbers (size), 2 of classes (zip, key), 2 left out")


@pytest.mark.parametrize("label", ["{}.0", "{}", "+{}", "{}e0", "-{}.50"])
def test_labels_that_are_plain_numbers_need_no_remark(tmp_path, label):
    labels = every(lambda row: label.format(draws[row] % 2))
    frame(state=labels).to_csv(tmp_path / "train.csv", index=False)
    part = {"kind": "tabular", "train": "train.csv", "validation": 0.25, "target": "state"}
    found: list[str] = []
    assert tasks.inspect(part, tmp_path, lambda *remark: found.append(": ".join(remark))) == []
    assert not [each for each in found if "plainly" in each]


def test_a_target_that_looks_like_numbers_is_named(tmp_path):
    table = frame(cost=every(lambda row: f"{draws[row]},5"))
    table.to_csv(tmp_path / "train.csv", index=False, sep=";")
    part = {"kind": "tabular", "train": "train.csv", "validation": 0.25, "target": "cost"}
    found: list[str] = []
    tasks.inspect(part, tmp_path, lambda *remark: found.append(": ".join(remark)))
    (said,) = [each for each in found if "look like numbers" in each]
    assert said.startswith("task.target: is taken for ")
    assert said.endswith("('42,5'): write them plainly, as 1234.5")


def test_a_table_whose_columns_are_all_left_out_says_why(tmp_path):
    cells = "".join(
        f"{amount:.2f};{'ab'[row % 2]}\n".replace(".", ",") for row, amount in enumerate(AMOUNTS)
    )
    (tmp_path / "train.csv").write_text(f"amount;kind\n{cells}")
    part = {"kind": "tabular", "train": "train.csv", "validation": 0.25, "target": "kind"}
    (problem,) = tasks.inspect(part, tmp_path)
    assert "has no column to predict from; column 'amount' is left out" in problem.what
    assert "write them plainly, as 1234.5" in problem.what


GIVES_AWAY = {
    "a copy": lambda table: table["kind"],
    "another name of each class": lambda table: table["kind"].map({"a": "won", "b": "lost"}),
    "a finer class": lambda table: table["kind"] + (table["size"] % 7).astype(int).astype(str),
    "a number above a threshold": lambda table: (table["kind"] == "a") * 50 + table["size"] / 9,
    "a gap": lambda table: table["size"].where(table["kind"] == "a"),
}


@pytest.mark.cases(len(GIVES_AWAY))
@pytest.mark.parametrize("name", GIVES_AWAY)
def test_a_column_that_gives_a_class_away_is_named(tmp_path, name):
    table = frame()
    found = remarks(tmp_path, table.assign(**{name: GIVES_AWAY[name](table)}))
    assert found[-1] == (
        f"column {name!r} alone gives the target away; remove it, unless it is known where the "
        "model is used"
    )


def test_rows_in_the_order_of_their_class_are_given_away_by_their_number(tmp_path):
    table = frame().sort_values("kind").reset_index(drop=True).reset_index()
    assert "column 'index' alone gives the target away" in remarks(tmp_path, table)[-1]


QUANTITIES = {
    "in another currency": lambda table: table["price"] * 1.1 + 3,
    "its logarithm": lambda table: np.log(table["price"] + 99),
    "falling": lambda table: -table["price"],
}


@pytest.mark.cases(len(QUANTITIES))
@pytest.mark.parametrize("name", QUANTITIES)
def test_a_column_that_gives_a_quantity_away_is_named(tmp_path, name):
    table = frame()
    found = remarks(tmp_path, table.assign(**{name: QUANTITIES[name](table)}), target="price")
    assert f"column {name!r} alone gives the target away" in found[-1]


def test_a_class_that_stands_for_a_quantity_gives_it_away(tmp_path):
    table = frame().assign(price=lambda each: (each["price"] // 10 * 10) + 0.5)
    table["range"] = "about " + table["price"].astype(str)
    found = remarks(tmp_path, table, target="price")
    assert "column 'range' alone gives the target away" in found[-1]


def test_a_column_that_only_helps_gives_nothing_away(tmp_path):
    (found,) = remarks(tmp_path, frame(), target="price")
    assert found.startswith("columns: ")


def test_a_wide_table_has_a_limited_number_of_lines(tmp_path):
    table = frame(**{f"c{number}": every(lambda row: f"{draws[row]}%") for number in range(200)})
    found = remarks(tmp_path, table)
    assert len(found) == 32
    assert found[-1] == "other columns have 170 more such remarks"
