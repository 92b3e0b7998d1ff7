"""The benchmark of a real fine-tune study: what contenders would hand out, and how it is judged."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hpsearch

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
EPOCHS = 3.0
PARAMS = {"learning_rate": 0.01, "warmup": 0.1, "weight_decay": 0.01, "batch_size": 32}


@pytest.fixture
def results(bench: Any) -> Any:
    return bench("finetunes.results")


@pytest.fixture
def quick(bench: Any, tmp_path: Path) -> Any:
    """The quick study with its data, in a folder."""
    study = bench("finetunes.study")
    sources = bench("recorded.data").Sources(None, None)
    study.make_data("quick", tmp_path, sources)
    return study.make_folder("quick", tmp_path, tmp_path / "run", 5, 12.5)


def run_of(results: Any, *rows: tuple[float, str, float, float], **failed: float) -> Any:
    """A run from (moment, trial, epochs, value)."""
    found = [results.Evaluation(at, 0.0, trial, epochs, value) for at, trial, epochs, value in rows]
    trials = {trial for _, trial, *_ in rows}
    params = {trial: {"trial": trial} for trial in trials}
    at = {name.removeprefix("trial_"): moment for name, moment in failed.items()}
    return results.Run(found, params, dict.fromkeys(trials, 1), at)


def test_each_contender_chooses_by_its_own_rule(results: Any) -> None:
    run = run_of(results, (1, "0", 1, 0.9), (2, "0", 2, 0.5), (3, "1", 1, 0.6), (4, "2", 3, 0.4))
    assert results.as_hpsearch_best(run.evaluations, EPOCHS) == "0"
    assert results.best_latest(run.evaluations, EPOCHS) == "1"
    assert results.best_in_full(run.evaluations, EPOCHS) == "2"
    for rule in (results.as_hpsearch_best, results.best_latest, results.best_in_full):
        assert rule([], EPOCHS) is None


def test_what_is_handed_out_changes_with_what_is_known_and_not_after_the_time_is_over(
    results: Any,
) -> None:
    run = run_of(results, (1, "0", 1, 0.3), (2, "1", 1, 0.5), (3, "1", 2, 0.6), (9, "2", 1, 0.9))
    changes = results.handed_out(run, results.best_latest, EPOCHS, until=8.0)
    assert changes == [(1, "0"), (2, "1")]


def test_a_trial_that_has_failed_is_not_handed_out_any_more(results: Any) -> None:
    run = run_of(results, (1, "0", 1, 0.3), (2, "1", 1, 0.5), trial_1=4.0)
    changes = results.handed_out(run, results.as_hpsearch_best, EPOCHS, until=8.0)
    assert changes == [(1, "0"), (2, "1"), (4.0, "0")]


def test_a_course_tells_what_a_contender_had_and_how_much_sooner_another_had_it(
    bench: Any, results: Any
) -> None:
    ours = results.Course([(10.0, 0.5), (20.0, 0.7)])
    theirs = results.Course([(30.0, 0.6), (60.0, 0.65)])
    better = results.Course([(40.0, 0.9)])
    assert ours.at(5.0) is None
    assert ours.at(15.0) == 0.5
    courses = {"hpsearch": ours, "theirs": theirs, "better": better}
    speed = bench("finetune")._speed
    assert speed("theirs", courses) == {
        "reached_s": 60.0,
        "hpsearch_s": 20.0,
        "times_faster": 3.0,
    }
    assert speed("better", courses)["times_faster"] is None
    assert speed("hpsearch", courses)["reached_s"] == 20.0


def test_the_study_file_of_a_run_has_its_seed_and_its_time(quick: Any) -> None:
    assert quick.spec.seed == 5
    assert quick.spec.budget.wall_clock_s == 12.5
    assert set(quick.space) == set(PARAMS)


@pytest.mark.parametrize("name", ["minilm", "scratch", "quick"])
def test_the_trainer_has_a_name_for_every_parameter(bench: Any, name: str) -> None:
    study = bench("finetunes.study")
    text = (study.FOLDER / f"{name}.yaml").read_text()
    spec = study.parse(text, base=Path())
    assert set(spec.space) == set(bench("finetunes.peers").TRAINER_NAMES)


@pytest.mark.thorough
@pytest.mark.parametrize("loop", ["built-in", "plain"])
def test_a_loop_reports_every_epoch_and_trains_a_seed_twice_in_the_same_way(
    results: Any, quick: Any, loop: str
) -> None:
    built = results.LOOPS[loop](quick)
    first = list(built.train(PARAMS, 7))
    assert [each.epochs for each in first] == [1, 2, 3]
    assert first[-1].value > 0.2, "of 8 classes"
    *_, last = built.train(PARAMS, 7)
    assert last.value == first[-1].value


@pytest.mark.thorough
def test_the_command_searches_with_real_processes_and_tells_what_hpsearch_best_prints(
    bench: Any, results: Any, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        str(BENCHMARKS / "finetune.py"),
        "--quick",
        "--contenders",
        "hpsearch",
    ]
    command += ["--folder", str(tmp_path / "runs"), "--json", str(tmp_path / "rows.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    names = [row["contender"] for row in rows]
    assert names == ["hpsearch"]
    for row in rows:
        assert f" {row['contender']} " in done.stdout
        assert row["trials"] >= row["full"]
        for step in row["handed_out"]:
            assert 0.0 <= step["value"] <= 1.0
            assert step["at"] <= row["seconds"]
    folder = tmp_path / "runs" / "quick" / "1-hpsearch"
    run = results.read_hpsearch(bench("finetunes.study").FineTune(folder), 0.0)
    chosen = results.handed_out(run, results.as_hpsearch_best, EPOCHS, until=math.inf)
    with hpsearch.open(f"sqlite:///{folder / results.DATABASE}", "quick") as study:
        best = study.best()
    # `best` also takes off what a value owes to luck, so of two like trials it may name the other.
    in_full = run.in_full(EPOCHS)
    named = [in_full[str(number)] for number in best["number"]]
    assert [in_full[trial] for _, trial in chosen[-1:]] == pytest.approx(named, abs=0.05)
