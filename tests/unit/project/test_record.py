"""Recording learning curves: the runs, the table, its figures and the races on it."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks.simulation.curve_file import load_curves
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.reading import load
from support.patience import wait_until
from support.running.programs import run_program
from trials.contract import Diverged

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
TABLES = sorted((BENCHMARKS / "recorded").glob("*.parquet"))
STUDIES = sorted((BENCHMARKS / "recorded").glob("*.yaml"))
LARGEST_BYTES = 10_000_000
ENDED = 0

TRAIN = """
from trials.contract import Diverged

def train(params, trial):
    for level in range(1, 19):
        if params["rate"] > 0.5 and level == 7:
            raise Diverged("too fast")
        if params["rate"] < 0.1 and level == 3:
            raise MemoryError("too wide")
        accuracy = 1 - params["rate"] / level - (trial.seed % 7) / 1000
        metrics = {"accuracy": accuracy, "loss": params["rate"] / level}
        if level > 17:
            metrics["seldom"] = 1.0
        trial.report(level, metrics)
"""
STUDY: dict[str, Any] = {
    "study": "small",
    "seed": 3,
    "task": {"kind": "small_training:train"},
    "space": {
        "rate": {"type": "float", "low": 0.01, "high": 1.0, "log": True},
        "kind": {"type": "categorical", "choices": ["plain", "wide"]},
        "width": {"type": "int", "low": 1, "high": 9, "when": {"kind": "wide"}},
    },
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "budget": {"trials": 9, "per_trial": {"epochs": 18}},
    "resources": {"cpu": 1, "gpu": 0},
}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the benchmarks by its name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def small(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A workload that trains in no time; of its configurations some fail."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "small_training.py").write_text(TRAIN)
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(STUDY))
    yield bench("recorded.recording").Workload(tmp_path / "small.yaml", tmp_path)
    sys.modules.pop("small_training", None)


def train(bench: Any, workload: Any, configurations: int, repeats: int) -> pd.DataFrame:
    """Record, and write the table beside the study file."""
    entries = bench("record").missing(workload, configurations, repeats)
    recorder = bench("recorded.recording").Recorder(workload, "cpu")
    for entry in entries:
        recorder.record(entry)
    table = bench("recorded.recording").pack(workload, workload.file.with_suffix(".parquet"))
    assert isinstance(table, pd.DataFrame)
    return table


def last_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The last report of each run."""
    return table.groupby(["trial", "seed"]).last(skipna=False)


def test_a_configuration_is_the_same_however_many_are_drawn_and_keeps_the_conditions(small):
    drawn = [small.configuration(number) for number in range(40)]
    assert drawn[7] == small.configuration(7)
    assert len({params["rate"] for params in drawn}) == 40
    assert {params["kind"] for params in drawn} == {"plain", "wide"}
    for params in drawn:
        assert ("width" in params) == (params["kind"] == "wide")


def test_a_table_has_each_report_of_each_seed_and_the_metrics_that_are_reported_often(bench, small):
    table = train(bench, small, 12, 5)
    assert set(table.columns) == {
        *("trial", "seed", "rate", "kind", "width", "epochs", "seconds"),
        *("metrics.accuracy", "metrics.loss"),
    }
    assert len(last_rows(table)) == 17
    inactive = table["kind"] == "plain"
    assert table.loc[inactive, "width"].isna().all()
    assert table.loc[~inactive, "width"].notna().all()
    whole = table[table["rate"].between(0.1, 0.5)]
    assert whole.groupby(["trial", "seed"])["epochs"].apply(list).iloc[0] == [*range(1, 19)]
    assert (whole.groupby(["trial", "seed"])["seconds"].diff().dropna() >= 0).all()


def test_a_run_that_fails_is_recorded_until_then_and_is_read_as_diverged(bench, small):
    last = last_rows(train(bench, small, 12, 0))
    assert (last.loc[last["rate"] > 0.5, "epochs"] == 7).all()
    assert (last.loc[last["rate"] < 0.1, "epochs"] == 3).all()
    failed = ~last["rate"].between(0.1, 0.5)
    assert failed.any()
    assert (last["metrics.accuracy"].isna() == failed).all()
    found = load_curves(small.file.with_suffix(".parquet"), small.spec)
    assert (len(found.curves.configurations), found.too_short) == (12, 0)
    one = {**small.configuration(int(last.index[failed.argmax()][0]))}
    with pytest.raises(Diverged):
        found.curves.measure(one, 0, 18.0)


def test_a_recording_continues_from_its_table_where_the_runs_are_gone(bench, small):
    before = train(bench, small, 12, 5)
    for file in small.runs.glob("*.json"):
        file.unlink()
    recording = bench("recorded.recording")
    table = small.file.with_suffix(".parquet")
    assert recording.unpack(small, table) == 17
    assert recording.unpack(small, table) == 0, "what has a file stays as it is"
    assert bench("record").missing(small, 13, 5) == [recording.Entry(0, 12)]
    pd.testing.assert_frame_equal(recording.pack(small, table), before)


def test_a_recording_starts_anew_where_the_table_is_of_another_study_file(bench, small):
    train(bench, small, 2, 0)
    changed = {**STUDY, "seed": 4}
    small.file.write_text(yaml.safe_dump(changed))
    other = bench("recorded.recording").Workload(small.file, small.folder / "elsewhere")
    assert bench("recorded.recording").unpack(other, small.file.with_suffix(".parquet")) == 0


def test_a_mistake_in_the_training_code_is_not_recorded(bench, small):
    (small.folder / "small_training.py").write_text("def train(params, trial):\n    params['none']")
    with pytest.raises(RuntimeError, match="none"):
        train(bench, small, 1, 0)
    assert list(small.runs.glob("*.json")) == []


def test_seeds_differ_and_the_same_seed_does_not(bench, small, tmp_path):
    table = train(bench, small, 12, 12)
    again = bench("recorded.recording").Workload(small.file, tmp_path / "again")
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "small_training.py").write_text(TRAIN)
    pd.testing.assert_frame_equal(
        table.drop(columns="seconds"), train(bench, again, 12, 12).drop(columns="seconds")
    )
    final = last_rows(table)["metrics.accuracy"].unstack("seed").dropna()
    assert (final[0] != final[1]).any()


def test_runs_of_a_study_file_that_has_changed_are_refused(bench, small):
    train(bench, small, 2, 0)
    small.file.write_text(yaml.safe_dump({**STUDY, "seed": 4}))
    changed = bench("recorded.recording").Workload(small.file, small.folder)
    with pytest.raises(SystemExit, match="has changed; remove"):
        bench("recorded.recording").read_runs(changed)


def test_figures_of_a_table_are_those_of_its_curves(bench, small):
    table = train(bench, small, 30, 12)
    row = bench("recorded.recording").summary(small, table)
    final = last_rows(table)["metrics.accuracy"].unstack("seed")
    assert (row["configurations"], row["repeats"], row["levels"]) == (30, 12, 18)
    assert row["diverged"] == final[0].isna().sum() > 0
    assert (row["best"], row["worst"]) == (final[0].max(), final[0].min())
    both = final.dropna()
    noise = np.sqrt(((both[0] - both[1]) ** 2 / 2).mean())
    assert row["noise"] == pytest.approx(noise)
    assert row["objective_2R/3"] > 0.95
    json.dumps({"rows": [row]}, allow_nan=False)


def test_a_recorded_workload_is_raced_on_by_its_reports(bench, small):
    table = train(bench, small, 12, 5)
    (task,) = bench("races.curves").recorded_tasks(small.folder)
    assert (task.name, task.family, task.unit, task.total) == ("small", "recorded", "steps", 18)
    assert task.space == STUDY["space"]
    first = table[table["seed"] == 0]
    finished = first[(first["epochs"] == 18) & first["metrics.accuracy"].notna()]
    assert task.best == pytest.approx(1 - finished["metrics.accuracy"].max())
    whole = finished.iloc[0]
    params = small.configuration(int(whole["trial"]))
    curves = task.curves()
    measured = curves.measure(params, 0, 18.0)
    assert measured["loss"] == pytest.approx(1 - whole["metrics.accuracy"])
    assert measured["validation_loss"] == pytest.approx(whole["metrics.loss"])
    assert measured["accuracy"] == pytest.approx(whole["metrics.accuracy"])
    assert measured == curves.measure(params, 1, 18.0)  # a race has one seed
    slower = bench("races.curves").SLOWER
    assert curves.seconds(params, 18.0) == pytest.approx(slower * whole["seconds"])
    failed = first[first["metrics.accuracy"].isna()].iloc[0]
    with pytest.raises(Diverged):
        curves.measure(small.configuration(int(failed["trial"])), 0, float(failed["epochs"]))


def test_words_are_tagged_by_rules(bench):
    text = "It must not read the first 3 lines of a file , if it is closed ; stop ."
    tags = bench("recorded.data").tags_of(text.split())
    inside = "O B-VERB B-NEGATION O B-NOUN I-NOUN B-NUMBER O B-PLACE I-PLACE I-PLACE"
    assert " ".join(tags) == f"{inside} O B-CLAUSE I-CLAUSE I-CLAUSE I-CLAUSE O O O"


@pytest.mark.thorough
def test_sentences_are_the_same_each_time_and_each_module_has_its_share(bench, tmp_path):
    data = bench("recorded.data")
    task = {"train": "data/sentences.csv", "text": "text"}
    made = []
    for name in ("first", "second"):
        data.make(task, tmp_path / name, data.Sources(None, None))
        made.append((tmp_path / name / "data" / "sentences.csv").read_bytes())
    assert made[0] == made[1]
    counts = pd.read_csv(tmp_path / "first" / "data" / "sentences.csv")["label"].value_counts()
    assert len(counts) > 8
    assert counts.max() <= data.MOST_SENTENCES


@pytest.mark.parametrize("name", ["data/banking77-test-600.csv", "./data/minilm"])
def test_data_that_does_not_come_with_anything_is_asked_for(bench, tmp_path, name):
    data = bench("recorded.data")
    with pytest.raises(SystemExit, match="this workload needs --"):
        data.make({"train": name}, tmp_path, data.Sources(None, None))


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_the_study_files_report_often_enough(study, bench):
    spec = load(study)
    assert spec.study == study.stem
    assert len(trial_budget(spec).report_at) >= bench("recorded.recording").LEVELS


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_a_table_that_comes_with_the_sources_can_be_simulated(table):
    spec = load(table.with_suffix(".yaml"))
    found = load_curves(table, spec)
    assert len(found.curves.configurations) >= 22
    assert found.too_short == 0
    assert found.timed
    levels = trial_budget(spec).report_at
    for runs in found.curves.runs:
        for run in runs:
            assert [*run.levels] == [*levels[: len(run.levels)]]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["images", "table-restarts"])
def test_a_table_that_comes_with_the_sources_can_be_continued(bench, tmp_path, name):
    study = BENCHMARKS / "recorded" / f"{name}.yaml"
    workload = bench("recorded.recording").Workload(study, tmp_path)
    data = bench("recorded.data")
    data.make(workload.spec.task, tmp_path, data.Sources(None, None))
    table = study.with_suffix(".parquet")
    assert bench("recorded.recording").unpack(workload, table) == len(
        last_rows(pd.read_parquet(table))
    )


def test_the_tables_are_small():
    assert sum(table.stat().st_size for table in TABLES) < LARGEST_BYTES


@pytest.mark.thorough
def test_a_recording_that_is_killed_goes_on_and_its_table_is_simulated(tmp_path):
    count = 12
    call = [sys.executable, str(BENCHMARKS / "record.py"), "table-restarts"]
    call += ["--folder", str(tmp_path), "--tables", str(tmp_path)]
    call += ["--configurations", str(count), "--second-seeds", "2"]
    runs = tmp_path / "raw" / "table-restarts"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(call, env=environment, stderr=subprocess.DEVNULL) as recording:
        wait_until(lambda: any(runs.glob("*.json")))
        recording.kill()
    before = {file: file.stat().st_mtime_ns for file in runs.glob("*.json")}
    assert 0 < len(before) < count

    again = run_program([*call, "--json", str(tmp_path / "rows.json")], env=environment)
    assert again.returncode == ENDED, again.stderr
    told = [line for line in again.stderr.splitlines() if line.startswith("table-restarts: conf")]
    assert len(told) == len({*told}) == count + 2 - len(before)
    for file, changed in before.items():
        assert file.stat().st_mtime_ns == changed
    (row,) = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert (row["configurations"], row["repeats"]) == (count, 2)

    study = BENCHMARKS / "recorded" / "table-restarts.yaml"
    curves = tmp_path / "table-restarts.parquet"
    command = [sys.executable, str(BENCHMARKS / "simulate.py"), str(study)]
    command += ["--curves", str(curves), "--workers", "2", "--format", "json"]
    simulated = run_program(command)
    assert simulated.returncode == ENDED, simulated.stderr
    assert json.loads(simulated.stdout)["configurations_used"] == count
