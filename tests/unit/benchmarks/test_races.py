"""Which races the command runs, and how it reads and writes their results."""

import json
from typing import Any

import pytest

from hpsearch.search.rungs import Verdict

BEFORE = {
    "method": "random",
    "task": "small",
    "family": "taskset",
    "seed": 0,
    "workers": 8,
    "regret": [0.5] * 100,
    "decisions": 48,
    "deciding_s": 0.1,
    "trials": 48,
}
"""A line of a file that was written when every race had the same budget."""


@pytest.fixture
def schedule(bench: Any) -> Any:
    return bench("races.schedule")


def test_results_from_before_races_named_their_budget_had_40_trials(bench, tmp_path):
    file = tmp_path / "before.json"
    file.write_text(json.dumps(BEFORE) + "\n" + json.dumps({**BEFORE, "budget": 10}) + "\n")
    old, new = bench("anytime").known_results(file)
    assert (old.terms.trials, old.terms.workers, old.family) == (40, 8, "taskset")
    assert new.terms.trials == 10


def test_halves_share_no_task_and_leave_none_out(schedule, several):
    names = {
        half: [task.name for task in schedule.split(several, half)] for half in schedule.SPLITS
    }
    assert names["develop"] == ["middle", "tiny"]
    assert names["report"] == ["small"]
    assert sorted(names["all"]) == ["middle", "small", "tiny"]
    assert schedule.split(several[::-1], "report") == schedule.split(several, "report")


def test_recording_one_more_workload_moves_no_other_to_the_other_half(
    bench, schedule, tmp_path, monkeypatch
):
    recorded = bench("races.curves").Recorded
    monkeypatch.setattr(schedule, "RECORDED", tmp_path)
    for name in "abcd":
        (tmp_path / f"{name}.yaml").touch()
    few = [recorded(tmp_path, name) for name in "bd"]
    more = [recorded(tmp_path, name) for name in "bcd"]
    assert [task.name for task in schedule.split(few, "develop")] == []
    assert [task.name for task in schedule.split(few, "report")] == ["b", "d"]
    assert [task.name for task in schedule.split(more, "develop")] == ["c"]


def test_a_budget_is_at_most_half_of_a_table(schedule, several, bench, capsys):
    terms = [bench("races.race").Terms(trials, 8) for trials in (10, 40)]
    entries = schedule.races(["random"], several, [0], terms)
    raced = {(entry.task, entry.terms.trials) for entry in entries}
    assert raced == {("small", 10), ("small", 40), ("middle", 10), ("tiny", 10)}
    assert "no races over 40 trials on small tables: middle, tiny" in capsys.readouterr().err


def test_of_all_families_those_without_tasks_are_left_out(schedule, data, capsys):
    found = schedule.tasks_of(["all"], data / "tasks.json", data)
    assert "small" in [task.name for task in found]
    assert "lcbench is left out" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="no task of the family lcbench"):
        schedule.tasks_of(["taskset", "lcbench"], data / "tasks.json", data)


def test_all_tables_are_meant_if_no_file_names_some(bench, several, data):
    found = bench("races.curves").tasks_in(None, data, "taskset")
    assert [task.name for task in found] == [task.name for task in several]
    with pytest.raises(SystemExit, match="no task of the family taskset"):
        bench("races.curves").tasks_in(None, None, "taskset")


def test_a_larger_budget_is_spent(bench, small):
    race = bench("races.race")
    spent = {}
    for budget in (10, 40):
        result = race.Result("random", "small", "taskset", 0, 2, budget=budget)
        peer = bench("races.peers").PEERS["random"](small, 1)
        race.Race(peer, small, result).run()
        assert len(result.regret) == race.MARKS
        spent[budget] = result.trials
    assert 10 <= spent[10] <= 14
    assert 40 <= spent[40] <= 46


def test_one_race_of_a_peer_gives_the_results_of_several_budgets(bench, small):
    race, peers = bench("races.race"), bench("races.peers").PEERS

    def raced(*budgets: int) -> Any:
        results = [race.Result("m", "small", "taskset", 0, 2, budget=each) for each in budgets]
        return race.Race(peers["optuna-hyperband"](small, 1), small, *results).run()

    for result in raced(10, 3):
        (alone,) = raced(result.budget)
        assert result.regret == alone.regret
        assert result.latest == alone.latest
        assert (result.own, result.trials) == (alone.own, alone.trials)


def test_only_races_that_differ_in_the_budget_of_a_peer_run_together(bench, schedule, several):
    terms = [bench("races.race").Terms(trials, 8) for trials in (5, 10)]
    entries = schedule.races(["hpsearch", "random"], several[:1], [0, 1], terms)
    groups = bench("anytime").together(entries)
    assert sorted((group[0].method, len(group)) for group in groups) == [
        *[("hpsearch", 1)] * 4,
        *[("random", 2)] * 2,
    ]


def test_optuna_hands_out_nothing_by_its_own_rule_before_a_trial_is_complete(bench, small):
    race = bench("races.race")
    result = race.Result("m", "small", "taskset", 0, 1, budget=2)
    race.Race(bench("races.peers").PEERS["optuna-median"](small, 1), small, result).run()
    assert result.own[45] == 1.0
    assert result.regret[45] < 1.0
    assert result.own[55] < 1.0


def test_a_trial_that_optuna_prunes_ends_and_is_no_longer_running(bench, small):
    peer = bench("races.peers").PEERS["optuna-median"](small, 1)
    for trial in range(5):
        peer.ask()
        peer.report(trial, 1, 0.1)
        peer.finish(trial, 9, 0.1)
    peer.ask()
    assert peer.report(5, 1, 0.9) is Verdict.STOP
    assert peer.recommended() is not None


def test_the_first_configuration_of_the_ranking_is_recommended(bench, small):
    result = bench("races.race").Result("hpsearch", "small", "taskset", 0, 2, budget=3)
    bench("races.ours").race(small, 7, {"sampler": {"kind": "random"}}, result)
    assert result.regret[-1] < result.regret[0] == 1.0
    assert result.shown[-1] < result.shown[0] == 1.0
