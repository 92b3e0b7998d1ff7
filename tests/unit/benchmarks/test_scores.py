"""How races are scored: ranks, paired differences, lost tasks and targets, on made-up results."""

import math
from collections.abc import Sequence
from typing import Any

import pytest


@pytest.fixture
def scores(bench: Any) -> Any:
    return bench("races.report")


@pytest.fixture
def made(bench: Any) -> Any:
    """Makes results of a method: for each task, the regret at every mark of seed 0, 1, ..."""
    result = bench("races.race").Result

    def make(
        method: str, tasks: dict[str, Sequence[float]], family: str = "f", **terms: int
    ) -> list[Any]:
        workers, budget = terms.get("workers", 8), terms.get("budget", 40)
        return [
            result(method, task, family, seed, workers, regret=[value] * 100, budget=budget)
            for task, values in tasks.items()
            for seed, value in enumerate(values)
        ]

    return make


def curve(scores: Any, result: Any, **percents: float) -> None:
    """Give a result other regrets at some percentages."""
    for name, value in percents.items():
        result.regret[scores.place(int(name[1:]))] = value


def test_equal_regrets_share_their_places_and_ranks_are_taken_race_by_race_and_mark_by_mark(
    scores, made
):
    runs = made("a", {"t": [0.1]}) + made("b", {"t": [0.3]}) + made("c", {"t": [0.1]})
    ranks = scores.mean_ranks(runs, ["a", "b", "c"])
    assert [ranks[name][5] for name in "abc"] == [1.5, 3.0, 1.5]
    ours, other = made("a", {"t": [0.1, 0.9], "u": [0.1]}), made("b", {"t": [0.5, 0.5], "u": [0.5]})
    curve(scores, ours[0], p5=0.6)
    ranks = scores.mean_ranks(ours + other, ["a", "b"])
    assert ranks["a"][5] == pytest.approx(5 / 3)
    assert ranks["a"][100] == pytest.approx(4 / 3)
    assert ranks["b"][100] == pytest.approx(5 / 3)


def test_differences_are_paired_by_task_and_seed_and_not_clear_within_twice_their_error(
    scores, made
):
    """The differences are 0.1, 0.2 and 0.3, whatever order the results stand in: a mean of 0.2 with
    a standard error of 0.1 / sqrt(3)."""
    ours = made("a", {"t": [0.2, 0.5], "u": [0.9]})
    others = made("b", {"t": [0.1, 0.3], "u": [0.6]})
    found = scores.difference(ours, others[::-1], 100)
    assert found.mean == pytest.approx(0.2)
    assert found.error == pytest.approx(0.1 / math.sqrt(3))
    assert str(found).endswith(scores.BEHIND)
    assert str(scores.difference(others, ours, 100)).endswith(scores.AHEAD)
    ours, zero = made("a", {"t": [0.0, 0.1, 0.2]}), made("b", {"t": [0.0, 0.0, 0.0]})
    found = scores.difference(ours, zero, 100)
    assert (found.mean, found.error) == (pytest.approx(0.1), pytest.approx(0.1 / math.sqrt(3)))
    assert str(found) == "+0.100 ± 0.058"
    assert str(scores.difference(zero, zero, 100)) == "+0.000 ± 0.000"
    found = scores.difference(made("a", {"t": [0.9]}), made("b", {"t": [0.1]}), 100)
    assert math.isnan(found.error)
    assert str(found) == "+0.800 ± nan"


def test_a_difference_is_that_of_its_mark(scores, made):
    ours, others = made("a", {"t": [0.2]}), made("b", {"t": [0.2]})
    curve(scores, ours[0], p25=0.7)
    assert scores.difference(ours, others, 25).mean == pytest.approx(0.5)
    assert scores.difference(ours, others, 50).mean == 0


def test_results_are_compared_within_a_family_a_budget_and_a_number_of_workers(scores, made):
    runs = [
        *made("a", {"t": [0.1]}),
        *made("a", {"t": [0.1]}, budget=10),
        *made("a", {"t": [0.1]}, workers=1),
        *made("a", {"t": [0.1]}, family="g"),
    ]
    found = scores.fields(runs, ["a"])
    assert [(field.family, field.terms.trials, field.terms.workers) for field in found] == [
        ("f", 40, 8),
        ("f", 10, 8),
        ("f", 40, 1),
        ("g", 40, 8),
    ]
    assert found[1].title == "f: 1 tasks, 1 seeds, 10 trials, 8 workers"


def test_a_method_that_lacks_races_is_left_out(scores, made):
    runs = made("a", {"t": [0.1, 0.1], "u": [0.1, 0.1]}) + made("b", {"t": [0.1], "u": [0.1]})
    (field,) = scores.fields(runs, ["b", "a", "c"])
    assert list(field.runs) == ["a"]
    assert field.incomplete == {"b": 2}


def test_families_count_alike_in_the_rank_over_all(scores, made):
    """In family f, a is first in all of three races; in family g, last in the only one. The method
    that only f has does not count."""
    three, one = {"t": [0.1, 0.1, 0.1]}, {"u": [0.9]}
    runs = made("a", three) + made("b", {"t": [0.5] * 3}) + made("c", {"t": [0.0] * 3})
    runs += made("a", one, family="g") + made("b", {"u": [0.5]}, family="g")
    ranks = scores.ranks_over_families(scores.fields(runs, ["a", "b", "c"]))
    assert {method: of[100] for method, of in ranks.items()} == {"a": 1.5, "b": 1.5}


def test_the_report_says_where_ours_is_behind(bench, scores, made, capsys):
    """Ours is worse than random search at 5% of the budget, by 0.2 in every race, and better by 0.1
    and 0.3 at the end."""
    ours = made("hpsearch", {"t": [0.3, 0.1]})
    for run in ours:
        run.regret[:5] = [0.6] * 5
        run.regret[5:25] = [0.41] * 20
    runs = ours + made("random", {"t": [0.4, 0.4]}) + made("syne-asha", {"t": [0.4, 0.4]})
    bench("races.report").report(runs, ["hpsearch", "random", "syne-asha"])
    tables = capsys.readouterr().out
    assert "f: 1 tasks, 2 seeds, 40 trials, 8 workers" in tables
    targets = tables[tables.index("Comparisons") :].splitlines()
    words = [line.split() for line in targets]
    (against,) = [line for line in words if line[4:7] == ["random", "in", "full"]]
    assert against[:4] == ["f", "40", "8", "hpsearch"]
    assert against[7:11] == ["+0.200", "±", "0.000", "BEHIND"]
    assert against[-4:] == ["-0.200", "±", "0.100", "ahead"]
    assert any(line[4:5] == ["ASHA"] for line in words)
    assert "BEHIND by more than twice the standard error in 6 of 10" in targets


def test_a_peer_is_judged_by_every_rule(bench, scores, made, capsys):
    """By its newest values and by its own rule the peer is better than by the best ones on the way,
    and than ours, which is as good by what it showed."""
    ours, peer = made("hpsearch", {"t": [0.3, 0.3]}), made("random", {"t": [0.5, 0.5]})
    for run in peer:
        run.latest, run.own = [0.2] * 100, [0.1] * 100
    for run in ours:
        run.shown = [0.5] * 100
    bench("races.report").report(ours + peer, ["hpsearch", "random"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    by_best, by_newest, by_own, by_shown = [line for line in lines if line[4:6] == ["random", "in"]]
    assert by_best[-4:] == ["-0.200", "±", "0.000", "ahead"]
    assert by_newest[-4:] == ["+0.100", "±", "0.000", "BEHIND"]
    assert by_own[-4:] == ["+0.200", "±", "0.000", "BEHIND"]
    assert by_shown[-3:] == ["+0.000", "±", "0.000"]
