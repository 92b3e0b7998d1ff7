"""Sentences on a table: what its columns are taken for, where that is not obvious, and columns that
give the target away."""

import re
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from trials.descriptions.cells import number_in
from trials.descriptions.tabular import CLASSIFICATION
from trials.tasks.datasets import remarks, tables
from trials.tasks.datasets.labels import alike, grouped, listed, quoted
from trials.tasks.tabular.columns import (
    MOST_CLASSES,
    ColumnTexts,
    ColumnUse,
    Floats,
    TabularSpec,
    Texts,
    columns,
    numbers_in,
    objective,
)

MOST = 30  # columns that have a sentence each
LOOKED_AT = 50  # texts of a column that are looked at for dates and other forms of numbers
MOST_CELLS, MOST_ROWS, FEWEST_ROWS = 2_000_000, 10_000, 40
"""Limits of the rows that show whether a column gives the target away."""
CERTAIN, EXACT = 0.05, 0.01
"""The share of the errors of always guessing one class, and that of the variance of a quantity,
that are left where a column alone gives the target away."""
MOST_TREE_CLASSES = 100
"""Classes of a target beyond which no column is tried, as trees become large."""
FEWEST_ERRORS = 5
"""Of always guessing one class, below which nothing shows that a column does better."""
IN_ORDER = 0.9995  # the rank correlation from which on a number gives a quantity away
_CURRENCY = "[$¢£¤¥\u20a0-\u20cf]"
WRITTEN_NUMBER = re.compile(
    rf"[-+(]*\s*(?:{_CURRENCY}|[A-Z]{{3}}\s)?\s*[-+]?\d[\d,.'’\s_]*"
    rf"(%|{_CURRENCY}|[A-Za-z]{{1,4}}[²³]?)?\)?"
)
"""A number with separators of thousands, a decimal comma, a currency, a percent sign or a unit,
which is the group."""
WRITTEN_DATE = re.compile(
    r"\d[-/.]\d+[-/.]\d|\d:\d\d|[a-z]{3,}[ .,-]+\d|\d[ .-]+[a-z]{3,}", re.IGNORECASE
)
LONGEST = 100
"""The most characters of a written number or date; the patterns take long on longer texts."""
LEADING_ZERO = re.compile(r"0\d+")
ROW_NAMES = re.compile(r"(unnamed: \d+|index|(.*[ _-])?(id|key|no|nr|uuid))", re.IGNORECASE)
"""Names of columns that number or name the rows."""


def on_table(spec: TabularSpec, table: pd.DataFrame, texts: Texts) -> Iterator[str]:
    """Sentences on the training rows without those on the target's values."""
    numeric, categorical = columns(spec, texts)
    used = [*numeric, *categorical]
    stated = {spec.target, *(spec.numeric or ()), *(spec.categorical or ())}
    sentences = []
    for column, found in texts.items():
        if column in stated or found.use is ColumnUse.ONE_VALUE:
            continue
        if column in used or found.use is ColumnUse.NAMES:
            sentences += [f"column {column!r} {what}" for what in _on_column(column, found)]
    yield _summary(spec, texts)
    yield from sentences[:MOST]
    if len(sentences) > MOST:
        yield f"other columns have {len(sentences) - MOST} more such remarks"
    for column in numeric:
        if what := remarks.on_outliers(texts[column].all_numbers, "row"):
            yield f"in column {column!r}, {what}; correct it if it is a mistake"
    codes = [column for column in numeric if column not in stated and _may_be_codes(texts[column])]
    if codes:
        what = f"taken for numbers, with few whole ones each: {listed(codes)}"
        yield f"{what}; if they are codes, name them under categorical"
    for column in categorical:
        if groups := alike(texts[column].rows):
            yield f"column {column!r} has classes that may be one: {grouped(groups)}"
    for column in _giving_away(spec, table, texts):
        what = f"column {column!r} alone gives the target away"
        yield f"{what}; remove it, unless it is known where the model is used"


def _summary(spec: TabularSpec, texts: Texts) -> str:
    parts: dict[str, list[str]] = {"of numbers": [], "of classes": [], "left out": []}
    numeric, categorical = columns(spec, texts)
    for column, found in texts.items():
        if column == spec.target:
            continue
        if column not in (*numeric, *categorical):
            why = ": one value" if found.use is ColumnUse.ONE_VALUE else ""
            parts["left out"].append(f"{column}{why}")
        else:
            parts["of numbers" if column in numeric else "of classes"].append(column)
    shown = [f"{len(found)} {name} ({listed(found)})" for name, found in parts.items() if found]
    kind = "a class" if objective(spec, texts) == CLASSIFICATION else "a quantity"
    return f"columns: {', '.join(shown)}; the target {spec.target!r} is {kind}"


def left_out(texts: Texts) -> Iterator[str]:
    """Sentences on columns whose rows have a text of their own each."""
    for column, found in texts.items():
        if found.use is ColumnUse.NAMES:
            yield f"column {column!r} {_on_names(found)}"


def _on_column(column: str, texts: ColumnTexts) -> Iterator[str]:
    use = texts.use
    if use is ColumnUse.NUMBERS:
        yield from _on_numbers(column, texts)
    elif use is ColumnUse.NAMES:
        yield _on_names(texts)
    else:
        yield from on_classes(texts)


def _on_names(texts: ColumnTexts) -> str:
    form = _form(list(texts.rows)[:LOOKED_AT]) or ""
    different, rows = len(texts.rows), sum(texts.rows.values())
    return f"is left out: {different:,} of {rows:,} rows have a text of their own{form}"


def on_classes(texts: ColumnTexts) -> Iterator[str]:
    """Half sentences on a column of classes that may be something else."""
    rows, form = sum(texts.rows.values()), _form(list(texts.rows)[:LOOKED_AT])
    of_numbers = sum(texts.rows[text] for text in texts.numbers)
    if 2 * of_numbers >= rows and texts.words:
        words = listed(map(quoted, texts.words))
        what = f"is taken for {len(texts.rows):,} classes: {of_numbers:,} of {rows:,} rows are"
        yield f"{what} numbers, and others are not ({words}); correct those, or leave them empty"
    elif form:
        yield f"is taken for {len(texts.rows):,} classes{form}"
    elif len(texts.rows) > max(MOST_CLASSES, rows / 2):
        yield f"is taken for classes, and has {len(texts.rows):,} of them in {rows:,} rows"


def _on_numbers(column: str, texts: ColumnTexts) -> Iterator[str]:
    rows = sum(texts.rows.values())
    others = {text: count for text, count in texts.rows.items() if text not in texts.numbers}
    if others:
        named = listed(map(quoted, sorted(others, key=lambda text: -others[text])))
        many = sum(others.values())
        what = f"is taken for numbers; what is not one counts as missing, {named}"
        yield f"{what} ({many:,} of {rows:,} rows)"
    zeros = [text for text in texts.numbers if LEADING_ZERO.fullmatch(text.strip())]
    if zeros:
        what = f"is taken for numbers, and some begin with 0 ({zeros[0]!r})"
        yield f"{what}; if they are codes, name it under categorical"
    numbers = np.sort(list(texts.numbers.values()))
    is_whole = rows > MOST_CLASSES and len(numbers) == rows and (numbers % 1 == 0).all()
    if is_whole and (numbers[-1] - numbers[0] == rows - 1 or ROW_NAMES.fullmatch(column)):
        yield "is taken for numbers, and every row has another; if it only names the row, remove it"


def _may_be_codes(texts: ColumnTexts) -> bool:
    numbers = set(texts.numbers.values())
    if not 3 <= len(numbers) <= MOST_CLASSES or sum(texts.rows.values()) < 5 * len(numbers):
        return False
    return all(number.is_integer() for number in numbers)


def _form(texts: Sequence[str]) -> str | None:
    """The end of a sentence on texts that look like dates or numbers; None for any others."""
    needed = remarks.NEARLY_ALL * len(texts)
    short = [text for text in texts if len(text) <= LONGEST]
    dated = pd.Series([text for text in short if WRITTEN_DATE.search(text)], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forms that it must guess
        dates = pd.to_datetime(dated, format="mixed", errors="coerce", utc=True).notna().sum()
    if dates >= needed:
        return f"; they look like dates ({quoted(texts[0])}): write them as numbers, such as a year"
    found = [match for text in short if (match := WRITTEN_NUMBER.fullmatch(text.strip()))]
    odd = [match[0] for match in found if number_in(match[0]) is None]
    if odd and len(found) >= needed and len({match[1] for match in found}) == 1:
        return f"; they look like numbers ({quoted(odd[0])}): write them plainly, as 1234.5"
    return None


def _giving_away(spec: TabularSpec, table: pd.DataFrame, texts: Texts) -> Iterator[str]:
    """The columns from which alone the target of other rows follows."""
    numeric, categorical = columns(spec, texts)
    count = max(len(numeric) + len(categorical), 1)
    rows = min(len(table), MOST_ROWS, max(MOST_CELLS // count, 1000))
    is_class = objective(spec, texts) == CLASSIFICATION
    if rows < FEWEST_ROWS or (is_class and len(texts[spec.target].rows) > MOST_TREE_CLASSES):
        return
    some = table.sample(rows, random_state=0)
    if is_class:
        follows, target = _gives_class, _codes(some, spec.target)
    else:
        follows, target = _gives_quantity, numbers_in(some, spec.target)[0]
    for column in (*numeric, *categorical):
        is_number = column in numeric
        values = numbers_in(some, column)[0] if is_number else _codes(some, column)
        if follows(values, target, is_number):
            yield column


def _codes(table: pd.DataFrame, column: str) -> Floats:
    codes, _ = pd.factorize(pd.Series(tables.texts_in(table, column), dtype=object))
    return codes.astype(np.float64)


def _gives_class(values: Floats, target: Floats, is_number: bool) -> bool:
    """True if a tree on one column, learnt from half of the rows, knows the class of the others."""
    from sklearn.tree import DecisionTreeClassifier

    half = len(target) // 2
    if len(np.unique(target[:half])) > half / 2:
        return False
    tree = DecisionTreeClassifier(random_state=0).fit(values[:half, None], target[:half])
    others = target[half:]
    wrong = int(np.count_nonzero(tree.predict(values[half:, None]) != others))
    _, counts = np.unique(others, return_counts=True)
    guessed_wrong = len(others) - int(counts.max())
    return guessed_wrong >= FEWEST_ERRORS and wrong <= CERTAIN * guessed_wrong


def _gives_quantity(values: Floats, target: Floats, is_number: bool) -> bool:
    """True if a quantity rises or falls with a number in nearly all rows, or if the mean of each
    class, of half of the rows, is that of the others."""
    from scipy.stats import spearmanr

    if is_number:
        known = ~np.isnan(values)
        if len(np.unique(values[known])) < FEWEST_ROWS / 2:
            return False
        return abs(float(spearmanr(values[known], target[known]).statistic)) >= IN_ORDER
    half = len(target) // 2
    means = pd.Series(target[:half]).groupby(values[:half]).mean()
    found = pd.Series(values[half:]).map(means).fillna(target[:half].mean())
    errors = np.square(found.to_numpy() - target[half:])
    return float(errors.mean()) <= EXACT * float(target[half:].var())
