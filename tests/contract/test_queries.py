"""What people read of a database is what is in it: the same on SQLite and on PostgreSQL."""

import itertools
import json
import math
import re
import sys
import time
from dataclasses import asdict
from operator import ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpsearch.domain.facts import NEXT_HOUR, DecisionKind, ErrorKind, NextHour, Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import moment
from hpsearch.domain.records import (
    Attempt,
    Decision,
    Outcome,
    ReportRecord,
    StudyRecord,
    StudyState,
    Trial,
)
from hpsearch.errors import FilterError, StudyNotFound, UserError
from hpsearch.store.codec import encode
from hpsearch.store.reading.best import best_trials
from hpsearch.store.reading.frames import attempts_table, reports_table, trials_table
from hpsearch.store.reading.queries import (
    TrialRow,
    find_study,
    only_study,
    seen_at,
    trial_detail,
    trial_rows,
)
from hpsearch.store.reading.status import list_studies, study_status
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.store.store import Store
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.expressions.parsing import Term, Visitor, parsed
from hpsearch.views.documents import status_document
from hpsearch.views.result import study_result
from hpsearch.views.terminal.status import study_facts
from hpsearch.views.words import by_device
from support.running.leases import let_pass
from support.thoroughness import examples

SPEC = """
study: s
objective: {metric: accuracy, direction: maximize}
budget: {trials: 10, gpu_hours: 0.5, wall_clock: 1h30m, \
cost: 5, cost_per_gpu_hour: 2, per_trial: {epochs: 3}}
"""


def save(store: Store, trials: list[Trial], name: str = "s", **study: Any) -> StudyRecord:
    """Write a study with these trials, their attempts and reports."""
    record = store.create_study(
        StudyRecord(0, name, **{"spec": SPEC, "directions": ("maximize",), **study})
    )
    attempts = [attempt for trial in trials for attempt in trial.attempts]
    reports = [report for trial in trials for report in trial.reports.values()]
    store.commit(record.id, Changes(trials=trials, attempts=attempts, reports=reports))
    return record


def trial(
    number: int, state: State = State.COMPLETE, *, params: dict[str, Any] | None = None, **more: Any
) -> Trial:
    return Trial(number, state, params or {}, resource=more.pop("resource", 3.0), **more)


def numbers(store: Store, **choice: Any) -> list[int]:
    with store.reading() as connection:
        return [row.number for row in trial_rows(connection, only_study(connection), **choice)]


def test_parameters_columns_and_metrics_can_be_compared(store):
    trials = [
        trial(n, params={"lr": 10.0**-n, "opt": "adamw" if n % 2 else "lion"}, value=n / 10)
        for n in range(5)
    ]
    for each in trials:
        each.reports[1.0] = ReportRecord(each.number, 1.0, 0.0, {"loss": 9.0})
        each.reports[2.0] = ReportRecord(each.number, 2.0, 0.0, {"loss": float(each.number)})
    save(store, trials)
    assert numbers(store, where="lr < 1e-2") == [3, 4]
    assert numbers(store, where="opt = 'adamw' or value >= 0.4") == [1, 3, 4]
    assert numbers(store, where="loss in (1, 2, 9)") == [1, 2]
    assert numbers(store, where="number >= 1", sort="opt, loss desc", limit=3) == [3, 1, 4]


def test_ranges_and_patterns_select_as_in_sql(store):
    texts = {0: "AdamW", 1: "adafactor", 2: "sgd_100%", 3: None}
    trials = [trial(n, params={"opt": name}, value=n / 10) for n, name in texts.items()]
    trials.append(trial(4, params={"opt": 3, "between": 1, "like": "x"}, value=None))
    save(store, trials)
    assert numbers(store, where="value between .1 and 2e-1 or number = 4") == [1, 2, 4]
    assert numbers(store, where="value not between 0.1 and 0.2") == [0, 3, 4]
    assert numbers(store, where="opt like 'ada%' and number between 0 and 3") == [0, 1]
    assert numbers(store, where="opt not like '%a%'") == [2, 3, 4]
    assert numbers(store, where="opt like '%100%%' or opt like 'sg_'") == [2]
    assert numbers(store, where="between = 1 and like like 'X' and between between 0 and 1") == [4]
    assert numbers(store, where="opt is null") == [3]
    assert numbers(store, where="0 < value <= 2e-1") == [1, 2]
    assert numbers(store, where="3 = opt or 0.3 <= value") == [3, 4]
    for wrong, told in (
        ("number like '1%'", "'number' is a number, which is like no text"),
        ("opt like 3", "such as: .* like 'ad%'"),
        ("value between 1 or 2", "such as: .* between 1 and 2"),
        ("value * 2 < 3", "only conditions in a study file calculate"),
        ("opt = value", "expected a value, found 'value'"),
        ("3 < 4", "expected a name, found '4'"),
        ("value between true and false", "have no order"),
    ):
        with pytest.raises(FilterError, match=told):
            numbers(store, where=wrong)


@pytest.mark.parametrize(
    ("pattern", "like", "unlike"),
    [
        ("är%", ["ÄRGER", "a\u0308rger"], ["Arger", "er"]),
        ("e%", ["Ende"], ["\u00e9t\u00e9", "e\u0301te\u0301"]),
        ("_t_", ["été", "e\u0301te\u0301", "atx"], ["été!"]),
        ("STRASSE", ["straße", "STRAẞE"], ["strase"]),
        ("οδος", ["ΟΔΟΣ", "οδοσ"], []),
        ("_stanbul", ["istanbul"], ["stanbul"]),
        ("istanbul", ["ISTANBUL"], ["İstanbul", "ıstanbul"]),
        ("c:\\%", ["C:\\temp", "c:\\"], ["c:/temp", "c:%"]),
        ("%\\", ["a\\"], ["a"]),
        ("\\%\\_", ["\\x\\y"], ["%_", "%\\_x"]),
        ("a%b%", ["a\nb\n", "AB"], ["ba"]),
        ("%" + "a%" * 30 + "b", ["a" * 30 + "b"], ["a" * 9000]),
    ],
)
def test_a_pattern_has_one_meaning_in_every_database(store, pattern, like, unlike):
    texts = [*like, *unlike]
    save(store, [trial(n, params={"note": text}) for n, text in enumerate(texts)])
    assert numbers(store, where=f"note like '{pattern}'") == list(range(len(like)))


@pytest.mark.parametrize("name", ['say "x"', "back\\slash", "a.b[0]", "$", "tab\there", "é/ü", "#"])
def test_a_parameter_can_have_any_name_in_a_filter(store, name):
    save(store, [trial(0, params={name: 1, "x": 2}), trial(1, params={"x": "a"})])
    assert numbers(store, where=f"`{name}` = 1 and x = 2") == [0]
    assert numbers(store, where=f"`{name}` is null", sort=f"`{name}`") == [1]


def test_how_far_limits_are_overstepped_can_be_asked_for(store):
    margins: list[dict[str, Any]] = [
        {"latency_ms": 0.5, "size": 0.25},
        {"latency_ms": -0.5, "size": 0.25},
        {"latency_ms": -0.5, "size": 0.0},
        {},
        {"size": math.inf, "latency_ms": math.nan},
    ]
    attributes = [{f"constraints:{name}": over for name, over in each.items()} for each in margins]
    save(
        store,
        [
            trial(n, system_attrs={"fixed_params": {"x": 9}, **each})
            for n, each in enumerate(attributes)
        ],
    )
    assert numbers(store, where="violation = 0") == [2, 3]
    assert numbers(store, where="violation > 0 and violation < 1") == [0, 1]
    assert numbers(store, where="violation in (0.75, 0.25)") == [0, 1]
    assert numbers(store, where="violation is null") == []
    assert numbers(store, sort="violation desc, number desc") == [4, 0, 1, 3, 2]
    with store.reading() as connection:
        best = best_trials(connection, only_study(connection), 9, where="violation > 0")
    assert best == [], "none of them has a value"


def test_columns_win_over_parameters_and_parameters_over_metrics(store):
    one = trial(0, params={"value": 1.0, "loss": 2.0}, value=5.0)
    one.reports[1.0] = ReportRecord(0, 1.0, 5.0, {"loss": 3.0, "value": 4.0})
    save(store, [one])
    for name, value in [
        ("value", 5),
        ("params.value", 1),
        ("metrics.value", 4),
        ("loss", 2),
        ("metrics.loss", 3),
    ]:
        assert numbers(store, where=f"{name} = {value}") == [0]


def test_times_compare_with_dates(store):
    save(store, [trial(0, created=1_750_000_000.0), trial(1, created=1_780_000_000.0)])
    assert numbers(store, where="created >= '2026-01-01'") == [1]
    assert numbers(store, where="created < '2025-06-15T17:06:41+02:00'") == [0]
    assert numbers(store, where="created < '2025-06-15T15:06:41Z'") == [0]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"])
def test_a_time_without_an_offset_is_the_one_that_tables_show(store, zone, monkeypatch):
    save(store, [trial(0, started=1_780_000_020.0), trial(1, started=1_780_003_620.0)])
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        shown = moment(1_780_000_000.0)
        assert numbers(store, where=f"started >= '{shown}'") == [0, 1]
        assert numbers(store, where=f"started > '{moment(1_780_000_080.0)}'") == [1]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("learning_rat = 1", "did you mean learning_rate?"),
        ("zzz = 1", "known are "),
        ("state = complete", "put text in quotes: 'complete'"),
        ("state = 'completed'", "did you mean complete?"),
        ("value = 'high'", "'value' is a number"),
        ("state = 3", "'state' is text"),
        ("created > 'yesterday'", "'2026-01-31'"),
        ("created > '0001-01-01'", "'2026-01-31'"),
        ("learning_rate < true", "no order"),
    ],
)
def test_a_mistake_in_a_filter_names_the_remedy(store, text, told):
    save(store, [trial(0, params={"learning_rate": 0.1})])
    with pytest.raises(FilterError) as caught:
        numbers(store, where=text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "text", ["x = ''' OR 1=1 --'", "`x'); DROP TABLE trials; --` = 1", "x in ('%s', ':a', '{}')"]
)
def test_nothing_typed_is_run_as_sql(store, text):
    save(store, [trial(0, params={"x": "y", "x'); DROP TABLE trials; --": 2})])
    assert numbers(store, where=text) == []
    assert numbers(store) == [0]


WORDS = (
    None,
    "a",
    "B",
    "é",
    "1",
    True,
    False,
    "É\\",
    "ab",
    "ﬀ",
    "\U0001f600",
    "[1]",
    [1],
    {"k": [2]},
)
LARGE = (2**53 + 1, 2**63, -(2**64), 10**40, 5e-324, sys.float_info.max)
MIXED = st.sampled_from(
    [*WORDS, *(-1, 0, 1, 2.5, 1e-4, 10**15), *LARGE, *(math.inf, -math.inf, math.nan)]
)
METRICS = MIXED.filter(lambda value: isinstance(value, float))
ODD = "odd 'name.é"
NUMBERS = st.sampled_from(
    [
        *("-1", "0", "1", "2.5", "1e-4", "inf", "-inf", "1e15", "99999999999999999999", "1.5"),
        *("9007199254740993", "9223372036854775808", "-18446744073709551616", "1e40"),
        *("5e-324", "1.7976931348623157e308", "1e999", "1" + 400 * "0"),
    ]
)
TEXTS = st.sampled_from(
    [
        "'a'",
        "'B'",
        '"é"',
        "'1'",
        "''",
        "'b'",
        r"'É\'",
        "'\U0001f601'",
        "'\uffff'",
        "'[ 1 ]'",
        "'{\"k\":[2]}'",
    ]
)
PATTERNS = st.text("aAbBéÉ\\%_f1", max_size=4).map(lambda text: f"'{text}'")
BETWEEN = st.sampled_from(["between", "not between"])
ORDERS = st.sampled_from(["<", "<=", ">", ">="])
FREE = ["lr", "mixed", f"`{ODD}`", "metrics.mixed", "acc"]
NUMERIC = ["value", "number", "seed", "resource", "rung", "violation"]
LIMITS = st.dictionaries(
    st.sampled_from(["constraints:size", "constraints:", "constraint"]), METRICS
)


@st.composite
def some_trials(draw: st.DrawFn) -> list[Trial]:
    """Trials of which the first has every parameter and metric, so that each name is known."""
    trials = []
    for number in range(draw(st.integers(1, 6))):
        params = {
            name: draw(MIXED) for name in ("lr", "mixed", ODD) if number == 0 or draw(st.booleans())
        }
        one = trial(
            number,
            draw(st.sampled_from(State)),
            params=params,
            value=draw(st.sampled_from([None, 0.0, 1.0, 2.5, -1.0])),
            seed=draw(st.sampled_from([0, 1, 2**62 + 1])),
            rung=draw(st.sampled_from([None, 0, 1])),
            error_text=draw(st.sampled_from([None, "a", "B"])),
            system_attrs=draw(LIMITS),
        )
        for resource in range(draw(st.integers(number == 0, 2))):
            metrics = {"acc": draw(METRICS), "mixed": draw(METRICS)}
            one.reports[float(resource)] = ReportRecord(number, float(resource), 0.0, metrics)
        trials.append(one)
    return trials


def comparisons() -> st.SearchStrategy[str]:
    free, numeric, textual = st.sampled_from(FREE), st.sampled_from(NUMERIC), st.just("error_text")
    equal = st.sampled_from(["=", "!=", "<>", "=="])
    anything = st.one_of(NUMBERS, TEXTS, st.sampled_from(["true", "false"]))

    def among(
        names: st.SearchStrategy[str], values: st.SearchStrategy[str]
    ) -> st.SearchStrategy[str]:
        listed = st.lists(values, min_size=1, max_size=3).map(lambda v: f"({', '.join(v)})")
        listed |= st.lists(values, min_size=40, max_size=60).map(lambda v: f"({', '.join(v)})")
        return st.tuples(names, st.sampled_from(["in", "not in"]), listed).map(" ".join)

    return st.one_of(
        st.tuples(free, equal, anything).map(" ".join),
        st.tuples(free, ORDERS, st.one_of(NUMBERS, TEXTS)).map(" ".join),
        st.tuples(numeric, st.one_of(equal, ORDERS), NUMBERS).map(" ".join),
        st.tuples(textual, st.one_of(equal, ORDERS), TEXTS).map(" ".join),
        st.tuples(
            st.one_of(free, numeric, textual), st.sampled_from(["is null", "is not null"])
        ).map(" ".join),
        st.tuples(st.one_of(free, textual), st.sampled_from(["like", "not like"]), PATTERNS).map(
            " ".join
        ),
        st.builds("{} {} {} and {}".format, free, BETWEEN, NUMBERS, NUMBERS),
        st.builds("{} {} {} and {}".format, textual, BETWEEN, TEXTS, TEXTS),
        among(free, anything),
        among(numeric, NUMBERS),
    )


def conditions() -> st.SearchStrategy[str]:
    def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        both = st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(
            lambda p: f"({''.join(p)})"
        )
        return st.one_of(both, inner.map(lambda c: f"not ({c})"))

    return st.recursive(comparisons(), joined, max_leaves=5)


names_taken = itertools.count()
on_real_databases = settings(max_examples=examples(60))


@on_real_databases
@given(trials=some_trials(), texts=st.lists(conditions(), min_size=1, max_size=6))
def test_where_selects_what_a_plain_reading_of_it_selects(store, trials, texts):
    name = f"where-{next(names_taken)}"
    save(store, trials, name)
    with store.reading() as connection:
        study = find_study(connection, name)
        rows = trial_rows(connection, study)
        for text in texts:
            found = [row.number for row in trial_rows(connection, study, where=text)]
            assert found == [row.number for row in rows if holds(text, row)], text


@on_real_databases
@given(
    trials=some_trials(),
    keys=st.lists(
        st.tuples(
            st.sampled_from([*FREE, *NUMERIC, "error_text"]), st.sampled_from(["", " asc", " desc"])
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_sort_orders_as_a_plain_sort_does(store, trials, keys):
    name, text = f"sort-{next(names_taken)}", ", ".join(map("".join, keys))
    save(store, trials, name)
    with store.reading() as connection:
        study = find_study(connection, name)
        expected = trial_rows(connection, study)
        for key, order in reversed(keys):
            for kind in ("truth", "nested", "text", "number"):
                name = key.strip("`")
                expected = _sorted(expected, name, kind, descending=order == " desc")
        assert [r.number for r in trial_rows(connection, study, sort=text)] == [
            r.number for r in expected
        ], text


ORDER = {"<": lt, "<=": le, ">": gt, ">=": ge}


def holds(text: str, row: TrialRow) -> bool:
    """The meaning of a condition, in plain Python."""
    return bool(Plainly(text, row).read(parsed(text)))


class Plainly(Visitor):
    def __init__(self, text: str, row: TrialRow) -> None:
        super().__init__(text)
        self._row = row

    def any(self, _part: Term, *tests: bool) -> bool:
        return True in tests

    def all(self, _part: Term, *tests: bool) -> bool:
        return False not in tests

    def opposite(self, _part: Term, test: bool) -> bool:
        return not test

    def ordered(self, part: Term, own: Any, given: Any) -> bool:
        if _kind(own) != _kind(given):
            return False
        return "=" in part.written if _equal(own, given) else bool(ORDER[part.written](own, given))

    def absent(self, _part: Term, own: Any) -> bool:
        return _kind(own) is None

    def among(self, _part: Term, own: Any, *values: Any) -> bool:
        return any(_equal(own, value) for value in values)

    def like(self, _part: Term, own: Any, pattern: str) -> bool:
        shape = pattern.casefold().replace("\\", "\\\\")
        expression = shape.replace("%", "[\\s\\S]*").replace("_", "[\\s\\S]")
        return isinstance(own, str) and re.fullmatch(expression, own.casefold()) is not None

    def leaf(self, part: Term) -> Any:
        return part.value if part.name is None else _value(part.name, self._row)


def _value(name: str, row: TrialRow) -> Any:
    if name.startswith("metrics."):
        return row.metrics.get(name.removeprefix("metrics."))
    if name in ("lr", "mixed", ODD):
        return row.params.get(name)
    return row.metrics.get("acc") if name == "acc" else getattr(row, name)


def _equal(own: Any, given: Any) -> bool:
    if isinstance(own, list | dict):
        return isinstance(given, str) and given[:1] in "[{" and json.loads(given or "0") == own
    if _kind(own) != _kind(given) or _kind(own) != "number":
        return _kind(own) == _kind(given) and own == given
    return math.isclose(own, given, rel_tol=1e-9)


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return None if math.isnan(value) else "number"
    if isinstance(value, list | dict):
        return "nested"
    return "text" if isinstance(value, str) else None


def _sorted(rows: list[TrialRow], name: str, kind: str, *, descending: bool) -> list[TrialRow]:
    there = [row for row in rows if _kind(_value(name, row)) == kind]
    absent = [row for row in rows if _kind(_value(name, row)) != kind]
    ordered = encode if kind == "nested" else lambda value: value
    there.sort(key=lambda row: ordered(_value(name, row)), reverse=descending)
    return there + absent


def test_a_number_beside_another_is_that_number_as_in_a_study_file(store):
    drawn = [0.8999999999999999, 0.9, 0.9 * (1 + 1e-8), 0.1 + 0.2, -(0.1 + 0.2), 3, 0.0, 1e-300]
    save(store, [trial(n, params={"s": s}, value=s, seed=n) for n, s in enumerate(drawn)])
    for sign, value in itertools.product(("=", "!=", "<", "<=", ">", ">=", "in", "not in"), drawn):
        near = value * (1 - 1e-12)
        right = f"(7, {near!r})" if "in" in sign else repr(near)
        meant = Expression(f"s {sign} {right}")
        expected = [n for n, s in enumerate(drawn) if meant.holds({"s": s})]
        for name in ("s", "value"):
            assert numbers(store, where=f"{name} {sign} {right}") == expected, (sign, value)


def test_counts_and_times_are_compared_exactly(store):
    seeds = [2**60, 2**60 + 1]
    trials = [trial(n, seed=seed, started=1.7e9 + n) for n, seed in enumerate(seeds)]
    save(store, trials)
    assert numbers(store, where=f"seed = {seeds[1]}") == [1]
    assert numbers(store, where=f"seed < {seeds[1]}") == [0]
    assert numbers(store, where="started = 1700000001") == [1]
    assert numbers(store, where="started > 1700000000") == [1]


@pytest.mark.parametrize(
    "text",
    [
        " or ".join(["x = 2"] * 1100) + " or x = 1",
        " and ".join(["x != 'a'"] * 1100),
        f"x in ({', '.join(map(str, range(-70_000, 2)))})",
        f"y in ({', '.join(repr(str(n)) for n in range(70_000))})",
        "not (" * 20 + "x = 1" + ")" * 20,
    ],
)
def test_long_filters_select_as_short_ones_do(store, text):
    save(store, [trial(0, params={"x": 1, "y": "7"})])
    assert numbers(store, where=text) == [0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (" or ".join(["x = 2"] * 10_000), "has 10000 terms, and at most 2000"),
        ("(" * 500 + "x = 1" + ")" * 500, "nested too deep"),
        ("not (" * 500 + "x = 1" + ")" * 500, "nested too deep"),
    ],
)
def test_a_filter_that_no_database_takes_is_refused_by_name(store, text, told):
    save(store, [trial(0, params={"x": 1})])
    with pytest.raises(FilterError, match=f"--where: .*{told}"):
        numbers(store, where=text)


def test_best_tells_a_tie_with_a_trial_that_is_not_shown(store):
    save(store, [trial(0, value=0.5), trial(1, value=0.5)])
    with store.reading() as connection:
        result = study_result(connection, only_study(connection))
    assert result.tied == [1]
    assert result.best is not None
    assert not result.best.tied, "it is not tied with itself"


def test_best_tells_a_tie_with_a_trial_that_stands_behind_some_that_cannot_be_compared(store):
    paused = [
        trial(n, State.PAUSED, value=0.5, resource=at) for n, at in enumerate((1.0, 3.0, 1.0))
    ]
    repeats = [trial(4 + n, value=0.5, role=Role.CONFIRM, repeats=0) for n in range(2)]
    save(store, [*paused, trial(3, value=0.5), *repeats])
    with store.reading() as connection:
        result = study_result(connection, only_study(connection))
    assert result.best is not None
    assert (result.best.trial.number, result.tied) == (0, [2])


def test_where_a_value_was_seen_is_the_first_report_that_has_it(store):
    one, other = trial(0, value=0.9), trial(1, value=0.8)
    for resource, value in ((1.0, 0.7), (2.0, 0.9), (3.0, 0.9)):
        one.reports[resource] = ReportRecord(0, resource, value, {})
    other.reports[3.0] = ReportRecord(1, 3.0, None, {})
    save(store, [one, other])
    with store.reading() as connection:
        study = only_study(connection)
        assert seen_at(connection, study, best_trials(connection, study, 2)) == {0: 2.0}
    assert (one.seen_at, other.seen_at) == (2.0, None)


def test_best_of_the_trials_that_a_filter_selects(store):
    save(
        store,
        [trial(n, value=n / 10, params={"opt": "adamw" if n % 2 else "lion"}) for n in range(6)],
    )
    with store.reading() as connection:
        ranked = best_trials(connection, only_study(connection), 2, where="opt = 'lion'")
    assert [r.trial.number for r in ranked] == [4, 2]


def test_of_several_objectives_the_best_are_those_that_nothing_beats(store):
    measured = [(0.9, 30.0), (0.8, 10.0), (0.8, 20.0), (0.7, 10.0)]
    made = [trial(n, value=values[0], values=list(values)) for n, values in enumerate(measured)]
    save(
        store,
        [*made, trial(4, State.FAILED, value=1.0, values=[1.0, 1.0])],
        directions=("maximize", "minimize"),
    )
    with store.reading() as connection:
        study = only_study(connection)
        assert [r.trial.number for r in best_trials(connection, study)] == [0, 1]
        assert [r.trial.values for r in best_trials(connection, study, 1)] == [[0.9, 30.0]]
        assert list_studies(connection)[0].best is None
        with pytest.raises(UserError, match=r"several objectives(.|\n)*hpsearch best"):
            _ = study.direction


def worked(
    number: int, state: State, outcome: Outcome | None, seconds: float = 10.0, **more: Any
) -> Trial:
    """A trial with one attempt that ended in a way that suits its state."""
    ended = None if outcome is None else 100.0 + seconds
    attempt = Attempt(
        number, 1, "w-0", 100.0, 0.0, 20.0, "node", "cpu", ended, outcome, seconds if ended else 0.0
    )
    return trial(number, state, attempts=[attempt], gpu_seconds=attempt.gpu_seconds, **more)


def test_the_status_of_a_study_tells_its_trials_budget_work_and_failures(store):
    trials = [
        worked(0, State.COMPLETE, Outcome.COMPLETE, value=0.8),
        worked(1, State.FAILED, Outcome.FAILED, error_kind=ErrorKind.DIVERGED, error_text="first"),
        worked(2, State.FAILED, Outcome.FAILED, error_kind=ErrorKind.DIVERGED, error_text="second"),
        worked(3, State.RUNNING, None, value=0.1, resource=1.0),
        worked(4, State.COMPLETE, Outcome.COMPLETE, value=0.7, role=Role.CONFIRM, repeats=0),
    ]
    record = save(store, trials, active_seconds=3600.0)
    store.acquire(record.id, "me@here:17#b-00t/1/2", 60.0)
    with store.reading() as connection:
        status = study_status(connection, only_study(connection))
    let_pass(store, 61.0)
    with store.reading() as connection:
        later = study_status(connection, only_study(connection))
    assert status.summary.state == "running"
    assert status.summary.head.driver == "me@here:17"
    assert status.summary.trials == {State.COMPLETE: 2, State.FAILED: 2, State.RUNNING: 1}
    assert {(b.name, b.used, b.most) for b in status.summary.budget} == {
        ("trials", 4, 10),
        ("gpu_seconds", 40.0, 1800.0),
        ("wall_clock_seconds", 3600.0, 5400.0),
        ("cost", 0.0, 5),
    }
    assert status.reserved_gpu_seconds == 20.0
    assert status.trials_per_hour == pytest.approx(4)
    assert [(r.trial, r.worker, r.node, r.resource) for r in status.running] == [
        (3, "w-0", "node", 1.0)
    ]
    assert [(f.kind, f.count, f.trial, f.text) for f in status.failures] == [
        ("diverged", 2, 2, "second")
    ]
    assert later.summary.state == "abandoned"
    assert later.summary.head.driver is None


PRICED = SPEC.replace("cost_per_gpu_hour: 2", "cost_per_gpu_hour: {a100: 2, T4: 0.5}")


def test_the_status_of_a_study_tells_what_each_type_of_device_took_and_cost(store):
    of = {"NVIDIA A100-SXM4-80GB": (1800.0, 900.0), "Tesla T4": (3600.0,), "Tesla V100": (7200.0,)}
    trials = []
    for device, taken in of.items():
        for seconds in taken:
            each = worked(len(trials), State.COMPLETE, Outcome.COMPLETE, seconds, value=0.5)
            each.attempts[0].device = device
            trials.append(each)
    save(store, trials, spec=PRICED)
    with store.reading() as connection:
        status = study_status(connection, only_study(connection))
    assert [(each.device, each.gpu_seconds, each.cost) for each in status.devices] == [
        ("Tesla V100", 7200.0, None),
        ("Tesla T4", 3600.0, 0.5),
        ("NVIDIA A100-SXM4-80GB", 2700.0, 1.5),
    ]
    said = "Tesla V100 2 h (no price), Tesla T4 1 h (0.5), "
    assert by_device(status) == said + "NVIDIA A100-SXM4-80GB 45 min (1.5)"
    assert study_facts(status, 0.0)["by device"] == by_device(status)
    document = status_document(status, StudyTrust(), None)
    assert document["seconds_left_low"] is document["seconds_left_high"] is None
    assert document["seconds_left_depends"] == []
    assert document["devices"][1] == {
        "device": "Tesla T4",
        "gpu_seconds": 3600.0,
        "cost": 0.5,
    }


def test_the_status_tells_what_another_hour_would_bring_if_that_was_foretold(store):
    save(store, [worked(0, State.COMPLETE, Outcome.COMPLETE, value=0.5)])
    study = store.find_study("s")
    told = NextHour("gpu_hour", 0.00123, 0.06, 0.005, trials=40)
    study.system_attrs = {NEXT_HOUR: asdict(told)}
    with store.reading() as connection:
        before = study_status(connection, only_study(connection))
    store.commit(study.id, Changes(study=study))
    with store.reading() as connection:
        status = study_status(connection, only_study(connection))
    assert "more" not in study_facts(before, 0.0)
    said = "another GPU hour: +0.0012 expected, 6% chance of more than +0.005"
    assert study_facts(status, 0.0)["more"] == said
    assert status_document(before, StudyTrust(), None)["next_hour"] is None
    assert status_document(status, StudyTrust(), None)["next_hour"] == asdict(told)


def test_one_type_of_device_is_not_told_apart_unless_it_has_no_price(store):
    trials = [worked(0, State.COMPLETE, Outcome.COMPLETE, value=0.5)]
    save(store, trials, "plain")
    save(store, trials, "priced", spec=PRICED)
    with store.reading() as connection:
        plain, priced = (
            study_status(connection, find_study(connection, name)) for name in ("plain", "priced")
        )
    assert by_device(plain) is None
    assert by_device(priced) == "cpu 10 s (no price)"


def test_studies_are_listed_newest_first_with_their_best(store):
    save(
        store,
        [trial(0, value=0.5), trial(1, State.QUEUED)],
        "old",
        created=1.0,
        state=StudyState.FINISHED,
    )
    save(store, [], "new", created=2.0, state=StudyState.INTERRUPTED)
    with store.reading() as connection:
        new, old = list_studies(connection)
    assert (new.head.name, new.state, new.best) == ("new", "interrupted", None)
    assert old.best is not None
    assert old.best.value == 0.5


def test_an_unknown_study_names_the_nearest(store):
    save(store, [], "banking-intents")
    with store.reading() as connection, pytest.raises(StudyNotFound) as caught:
        find_study(connection, "banking-intent")
    assert "did you mean banking-intents?" in str(caught.value)


def test_one_trial_with_everything_known_of_it(store):
    one = worked(0, State.COMPLETE, Outcome.COMPLETE, value=0.8)
    for resource in (2.0, 1.0):
        one.reports[resource] = ReportRecord(0, resource, 0.8, {"accuracy": 0.8, "loss": math.inf})
    record = save(store, [one])
    store.commit(
        record.id, Changes(decisions=[Decision(0, DecisionKind.PRUNE, "behind", 1.0, [3, 4])])
    )
    with store.reading() as connection:
        detail = trial_detail(connection, only_study(connection), 0)
        with pytest.raises(UserError, match="has no trial 1"):
            trial_detail(connection, only_study(connection), 1)
    assert [r["resource"] for r in detail.reports] == [1.0, 2.0]
    assert detail.reports[0]["metrics"] == {"accuracy": 0.8, "loss": math.inf}
    assert detail.attempts[0]["outcome"] == "complete"
    assert detail.decisions[0]["against"] == [3, 4]


def test_frames_have_a_column_for_each_parameter_and_metric(store):
    one = worked(
        0, State.COMPLETE, Outcome.COMPLETE, value=0.8, params={"lr": 0.1, "value": "x", "acc": 7}
    )
    one.reports[1.0] = ReportRecord(0, 1.0, 0.8, {"acc": 0.8})
    save(store, [one, trial(1, State.QUEUED, params={"lr": 0.2})])
    with store.reading() as connection:
        study = only_study(connection)
        trials, reports, attempts = (
            make(connection, study).frame()
            for make in (trials_table, reports_table, attempts_table)
        )
    assert list(trials["lr"]) == [0.1, 0.2]
    assert trials[["value", "params.value", "acc", "metrics.acc"]].to_numpy().tolist()[0] == [
        0.8,
        "x",
        7,
        0.8,
    ]
    assert reports[["trial", "resource", "acc", "lr", "params.acc"]].to_numpy().tolist() == [
        [0, 1.0, 0.8, 0.1, 7]
    ]
    assert attempts[["trial", "number", "worker"]].to_numpy().tolist() == [[0, 1, "w-0"]]
