"""What `hpsearch train` refuses, and what it says of the record of its trial."""

import json
import re
import shlex
from contextlib import closing
from pathlib import Path

import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.running.creation.study import create_study, environment
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.store import Store
from hpsearch.study_file.reading import parse
from support.running.local_executor import LocalExecutor

OWN = """
study: own
task: {kind: "own_code:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 3}}
"""

TABLE = """
study: own
task: {{kind: tabular, train: {table}, validation: 0.2, target: y}}
space: {{learning_rate: {{type: float, low: 1.0e-5, high: 1.0, log: true}}}}
objective: {{metric: accuracy, direction: maximize}}
budget: {{trials: 5, per_trial: {{steps: 2}}}}
"""


def test_a_study_without_a_value_has_nothing_to_train(run, save):
    save("young", [Trial(0, State.RUNNING, {"lr": 0.1})])
    said = run("train", "young")
    assert said.code == 2
    assert "no trial of young has a value yet" in said.err


def test_a_searched_function_is_trained_by_its_own_program(run, save):
    save("own", [Trial(0, State.COMPLETE, {"x": 0.1}, value=0.5)], OWN)
    said = run("train", "own")
    assert said.code == 2
    assert "python -m trials best.yaml" in said.err


@pytest.mark.parametrize(
    ("library", "checkpoint", "advice"),
    [
        ("ray_tune", "/kept/0", "the checkpoint of trial 0 is /kept/0"),
        ("ray_tune", None, "trial 0 kept no checkpoint; call your code with its parameters: "),
        ("optuna", None, "call the objective with optuna.trial.FixedTrial(its parameters): "),
    ],
)
def test_code_for_another_library_has_been_trained_by_its_study(
    run, save, library, checkpoint, advice
):
    text = OWN.replace("task: {", f"task: {{library: {library}, ")
    assert text != OWN
    trial = Trial(0, State.COMPLETE, {"x": 0.1}, value=0.5, best_checkpoint=checkpoint)
    save("tuned", [trial], text)
    said = run("train", "tuned")
    assert said.code == 2
    assert advice in said.err
    if checkpoint is None:
        (command,) = re.findall(r'hpsearch (best --where ".*" --format json tuned)', said.err)
        assert json.loads(run(*shlex.split(command)).out)[0]["params"] == {"x": 0.1}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose second column follows from its first."""
    path = tmp_path / "table.csv"
    rows = [f"{n % 7},{'low' if n % 7 < 4 else 'high'}" for n in range(60)]
    path.write_text("x,y\n" + "\n".join(rows) + "\n")
    return path


def test_it_trains_what_is_expected_to_be_best_and_not_what_was_lucky_once(
    run, save, table, tmp_path
):
    lucky = Trial(0, State.PAUSED, {"learning_rate": 1e-4}, value=0.99, resource=1.0)
    lucky.expected, lucky.expected_deviation = 0.7, 0.01
    good = Trial(1, State.PAUSED, {"learning_rate": 1e-2}, value=0.8, resource=1.0)
    good.expected, good.expected_deviation = 0.9, 0.01
    save("own", [lucky, good], TABLE.format(table=table))
    said = run("train", "own", "--out", str(tmp_path / "models"))
    assert said.code == 0, said.err
    assert "trial 1 of study own, paused with 0.8, 0.9 ± 0.016 if trained to the end\n" in said.err
    written = json.loads((Path(said.out.strip()) / "training.json").read_text())
    assert written["trial"] == 1


@pytest.fixture
def searched(table: Path, sqlite_url: str) -> dict[int, Trial]:
    """The trials of a study of the table, which workers trained: some were paused and continued."""
    text = TABLE.format(table=table).replace("steps: 2", "steps: 3")
    text += "search: {sampler: random, pruner: {kind: promotion, eta: 3, pause: true}}\n"
    text += "settings: {min_data_in_leaf: 2, bagging_fraction: 0.8}\n"
    spec = parse(text, base=table.parent)
    checkpoints = table.parent / "checkpoints"
    with closing(Store.open(sqlite_url)) as store:
        history = create_study(store, spec, str(checkpoints))
        history.add_environment(environment(spec, "CPU"))
        lease = store.acquire(history.study.id, "driver", 1e5)
        executor = LocalExecutor(worker_config(spec, checkpoints))
        Driver(build_study(history, spec), executor, store, lease, lambda *_: None).run()
        store.release(lease)
    return {trial.number: trial for trial in history.trials}


def test_a_trial_is_the_same_again_until_its_data_change(run, searched, table, tmp_path):
    continued = next(n for n, each in searched.items() if len(each.attempts) > 1)
    said = run("train", "own", "--trial", str(continued), "--out", str(tmp_path / "models"))
    assert said.code == 0, said.err
    reports = len(searched[continued].reports)
    assert f"the same as trial {continued}, bit for bit: {reports} reports\n" in said.err
    table.write_text(table.read_text().replace("3,low\n4,high", "3,high\n4,low"))
    said = run("train", "own", "--trial", str(continued), "--out", str(tmp_path / "models"))
    assert said.code == 0, said.err
    assert Path(said.out.strip()).is_dir()
    assert "may differ: table.csv has changed" in said.err
    parted = rf"not the same as trial {continued}: at [\d.]+: \w+ [\d.]+, on record [\d.]+\n"
    assert re.search(parted, said.err), said.err


def test_a_training_on_all_data_is_not_compared(run, searched, tmp_path):
    given = ("--data", "train+validation", "--out", str(tmp_path / "models"))
    said = run("train", "own", "--trial", "0", *given)
    assert said.code == 0, said.err
    assert "same as trial" not in said.err
