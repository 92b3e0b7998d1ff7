"""The benchmark that search is measured in: its clock, its tasks, its scores and its command."""

import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpsearch.search.rungs import Verdict
from support.running.programs import run_program

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"

POINTS = 9


def settings(task: Any, row: int) -> dict[str, float]:
    with np.load(task.folder / "small.npz") as file:
        learning_rate, beta1 = file["hp"][row]
    return {"learning_rate": float(learning_rate), "one_minus_beta1": float(1 - beta1)}


@dataclass
class Scripted:
    """Pauses every trial at its first point and continues with the oldest, as soon as it has begun
    `wide` of them."""

    bench: Any
    task: Any
    wide: int
    began: int = 0
    paused: list[int] = field(default_factory=list)
    heard: list[tuple[int, int]] = field(default_factory=list)
    ended: dict[int, int] = field(default_factory=dict)

    def ask(self) -> Any:
        race = self.bench("races.race")
        if self.began < self.wide:
            self.began += 1
            return race.Job(self.began - 1, settings(self.task, self.began - 1))
        if not self.paused:
            return None
        trial = self.paused.pop(0)
        return race.Job(trial, settings(self.task, trial))

    def report(self, trial: int, resource: int, value: float) -> Any:
        self.heard.append((trial, resource))
        if resource > 1:
            return Verdict.CONTINUE
        self.paused.append(trial)
        return Verdict.PAUSE

    def finish(self, trial: int, resource: int, value: float) -> None:
        self.ended[trial] = resource


def raced(
    bench: Any, task: Any, contender: Any, workers: int, minutes: list[float] | None = None
) -> Any:
    race = bench("races.race")
    result = race.Result("scripted", task.name, task.family, 0, workers)
    looks = None if minutes is None else [60 * each for each in minutes]
    (result,) = race.Race(contender, task, result).run(looks)
    return result


def test_a_paused_trial_goes_on_from_where_it_was_and_pays_only_for_the_rest(bench, small):
    contender = Scripted(bench, small, wide=2)
    raced(bench, small, contender, 2, [1.0 + POINTS - 1])
    assert contender.heard == [(0, 1), (1, 1), *((t, r) for r in range(2, POINTS) for t in (0, 1))]
    assert contender.ended == {0: POINTS, 1: POINTS}


def test_a_run_that_diverges_ends_there(bench, small):
    contender = Scripted(bench, small, wide=4)
    raced(bench, small, contender, 4, [float(POINTS)])
    assert contender.ended == {3: 3, 0: POINTS, 1: POINTS, 2: POINTS}


def test_by_the_other_rule_the_trial_with_the_best_newest_value_is_recommended(bench, small):
    judge = bench("races.race").Judge(small, small.curves())
    known = [settings(small, number) for number in range(4)]
    result = raced(bench, small, Scripted(bench, small, wide=4), 4, [float(POINTS)])
    # The fourth one diverges on the way: its newest value is the worst there is.
    ends = [judge.value(params, POINTS)[0] for params in known[:3]]
    assert result.latest == [pytest.approx(judge.regret(min(ends)))]


def test_nothing_reported_is_worth_as_much_as_the_median(bench, small):
    result = raced(bench, small, Scripted(bench, small, wide=1), 1, [0.5, 2.0])
    assert result.regret[0] == 1.0
    final = bench("races.race").Judge(small, small.curves()).of(settings(small, 0))
    assert result.regret[1] == pytest.approx(final)


def test_a_table_is_searched_as_one_minus_beta_and_cut_off_at_ten_initial_losses(bench, small):
    assert set(small.space) == {"learning_rate", "one_minus_beta1"}
    assert all(parameter["log"] for parameter in small.space.values())
    assert small.penalty == pytest.approx(10 * float(np.nanmedian(small._table[2][:, 0])))
    judge = bench("races.race").Judge(small, small.curves())
    assert judge.value(settings(small, 3), POINTS) == (small.penalty, True)
    assert judge.value(settings(small, 4), POINTS) == (small.penalty, False)
    assert judge.of(settings(small, 3)) == 1.0


def test_a_task_that_is_nowhere_is_told(bench, data):
    (data / "tasks.json").write_text(json.dumps({"tasks": ["3945"]}))
    with pytest.raises(SystemExit, match="3945 is neither a task"):
        bench("races.curves").tasks_in(data / "tasks.json", data, "lcbench")


NEEDS = {
    **dict.fromkeys(["random", "optuna-tpe", "optuna-hyperband", "optuna-median"], "optuna"),
    "smac": "smac",
    **dict.fromkeys(["syne-asha", "syne-bohb"], "syne_tune.optimizer.schedulers.asha"),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", NEEDS)
def test_a_peer_gets_better_over_its_budget(bench, small, name):
    pytest.importorskip(NEEDS[name])
    race = bench("races.race")
    contender = bench("races.peers").PEERS[name](small, 1)
    result = raced(bench, small, contender, 4)
    assert len(result.regret) == race.MARKS
    assert result.regret[-1] < 0.2
    assert result.decisions >= result.trials >= race.FULL_TRIALS


@pytest.mark.parametrize("name", ["syne-mobster", "syne-hypertune", "syne-dyhpo"])
def test_a_slow_peer_gets_better_over_a_small_budget(bench, small, name):
    pytest.importorskip("syne_tune.optimizer.legacy_baselines")
    race = bench("races.race")
    result = race.Result(name, small.name, small.family, 0, 2, budget=4)
    race.Race(bench("races.peers").PEERS[name](small, 1), small, result).run()
    assert result.regret[-1] < 0.5
    assert result.decisions >= result.trials >= 4


@pytest.mark.thorough
def test_ours_is_the_real_study_with_what_a_file_leaves_to_its_defaults(bench, small):
    spec = bench("races.ours").study_file(small, bench("races.race").Terms(workers=4), 7, {})
    assert spec.search == type(spec.search)()
    result = bench("races.race").Result("hpsearch", small.name, small.family, 0, 4)
    bench("races.ours").race(small, 7, {"sampler": {"kind": "random"}}, result)
    assert len(result.regret) == bench("races.race").MARKS
    assert result.regret[-1] < 0.2
    assert result.trials > bench("races.race").FULL_TRIALS


def test_our_settings_are_written_behind_our_name(bench):
    words = "hpsearch sampler=tpe sampler.multivariate=true pruner=promotion pruner.first_rung=3"
    assert bench("anytime").search_of(words) == {
        "sampler": {"kind": "tpe", "multivariate": True},
        "pruner": {"kind": "promotion", "first_rung": 3},
    }


@pytest.mark.thorough
def test_the_command_prints_a_table_and_goes_on_where_it_was_interrupted(data):
    methods = ["hpsearch", "random", "optuna-tpe"]
    methods += ["syne-asha"] if importlib.util.find_spec("syne_tune") else []
    call = [sys.executable, str(BENCHMARKS / "anytime.py")]
    call += ["--tasks", str(data / "tasks.json"), "--data", str(data), "--family", "taskset"]
    call += ["--seeds", "1", "--jobs", "1", "--json", str(data / "runs.json")]
    call += ["--trials", "5,40", "--workers", "8"]
    first = run_program([*call, "--methods", ",".join(methods[1:])])
    assert first.returncode == 0, first.stderr
    second = run_program([*call, "--methods", ",".join(methods)])
    assert second.returncode == 0, second.stderr
    assert len(second.stderr.splitlines()) == 2, "only what is missing is raced"
    results = [json.loads(line) for line in (data / "runs.json").read_text().splitlines()]
    raced = {(result["method"], result["budget"]) for result in results}
    assert raced == {(method, budget) for method in methods for budget in (5, 40)}
    assert len(results) == 2 * len(methods)
    for trials in ("5", "40"):
        title = f"taskset: 1 tasks, 1 seeds, {trials} trials, 8 workers"
        table = second.stdout.split(title)[1].splitlines()[4:]
        assert [line.split()[0] for line in table[: len(methods)]] == methods
    assert "Comparisons" in second.stdout
