"""`hpsearch train --as`: real trials of small studies, trained once by workers and once more."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.running.creation.study import create_study, environment
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.store import Store
from hpsearch.study_file.reading import parse
from support.running.local_executor import LocalExecutor

MODULE = """
import random

def train(params, trial):
    print("not a result")
    draw = random.Random(trial.seed)
    done, loss = 0, 0.0
    if trial.checkpoint is not None:
        done, loss = map(float, (trial.checkpoint / "state").read_text().split())
    for epoch in range(int(done) + 1, trial.budget + 1):
        if params["x"] > 0.9:
            raise ValueError(f"x is too large for {trial!r}")
        # A function that is continued draws from its beginning again.
        loss += params["x"] + 0.01 * draw.random()
        with trial.save() as folder:
            (folder / "state").write_text(f"{epoch} {loss!r}")
        trial.report(epoch, {"loss": loss, "seconds": random.random()})
    trial.report(epoch, {"loss": loss / 2, "test_loss": 2 * loss})
    raise ValueError("no test rows")
"""

PROGRAM = """
import json, os, sys
x, folder = float(sys.argv[1]), sys.argv[2]
state = os.path.join(folder, "state")
done = int(open(state).read()) if os.path.exists(state) else 0
print("begins after", done)
for epoch in range(done + 1, 3 + 1):
    with open(state + ".new", "w") as file:
        file.write(str(epoch))
    os.replace(state + ".new", state)
    print(json.dumps({"resource": epoch, "loss": x / epoch}), flush=True)
"""

OWN: dict[str, Any] = {
    "study": "own",
    "task": {"kind": "repeated_module:train"},
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 4, "per_trial": {"epochs": 3}},
    "search": {"sampler": "random", "pruner": {"kind": "promotion", "eta": 3, "pause": True}},
    "enqueue": [{"x": 0.1}, {"x": 0.95}, {"x": 0.5}, {"x": 0.2}],
    "resources": {"workers": 1},
}
"""Trial 0 is paused at the first rung and continued later, and trial 1 fails."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of studies of a function, a command and a table."""
    folder = tmp_path_factory.mktemp("reproduce")
    (folder / "repeated_module.py").write_text(MODULE)
    (folder / "program.py").write_text(PROGRAM)
    rows = "".join(f"{n % 7},{'low' if n % 7 < 4 else 'high'}\n" for n in range(60))
    (folder / "table.csv").write_text(f"x,y\n{rows}")
    drive(folder, OWN)
    run = f"{sys.executable} program.py {{x}} {{folder}}"
    command = {"kind": "command", "run": run}
    drive(folder, {**OWN, "study": "command", "task": command, "enqueue": [{"x": 0.3}]}, trials=1)
    table = {"kind": "tabular", "train": "table.csv", "validation": 0.3, "target": "y"}
    rates = {"learning_rate": {"type": "float", "low": 1e-4, "high": 1e-1, "log": True}}
    changes = {"task": table, "space": rates, "enqueue": [], "settings": {"batch_size": 8}}
    drive(folder, {**OWN, "study": "table", **changes}, trials=1)
    return folder


def drive(folder: Path, study: dict[str, Any], trials: int = 4) -> None:
    """Train a study to its end, in this process."""
    text = yaml.safe_dump({**study, "budget": {**study["budget"], "trials": trials}})
    spec = parse(text, base=folder)
    checkpoints = folder / spec.study
    with closing(Store.open(f"sqlite:///{folder}/study.db")) as store:
        history = create_study(store, spec, str(checkpoints))
        history.add_environment(environment(spec, "CPU"))
        lease = store.acquire(history.study.id, "driver", 1e5)
        executor = LocalExecutor(worker_config(spec, checkpoints))
        Driver(build_study(history, spec), executor, store, lease, lambda *_: None).run()
        store.release(lease)


@pytest.fixture
def reproduce(run: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    def call(study: str, number: str, *more: str) -> Any:
        storage = f"sqlite:///{folder}/study.db"
        return run("train", study, "--as", number, *more, "--storage", storage)

    return call


@pytest.fixture
def changed(folder: Path) -> Iterator[Callable[[str, str, str], None]]:
    """Changes a file until the test has ended."""
    before: dict[Path, str] = {}

    def change(name: str, old: str, new: str) -> None:
        path = folder / name
        text = before.setdefault(path, path.read_text())
        assert old in text
        path.write_text(text.replace(old, new))

    yield change
    for path, text in before.items():
        path.write_text(text)
    sys.modules.pop("repeated_module", None)


def promoted(folder: Path) -> int:
    """A trial of the function that was paused and continued."""
    with closing(Store.open(f"sqlite:///{folder}/study.db")) as store:
        trials = store.load("own").trials
    return next(trial.number for trial in trials if len(trial.attempts) > 1)


def test_a_trial_that_was_paused_is_paused_again_and_is_the_same(reproduce, folder):
    before = (folder / "study.db").read_bytes()
    said = reproduce("own", str(promoted(folder)))
    assert said.code == 0, said
    lines = ["at 1: the same", "at 2: the same", "at 3: the same"]
    assert said.out.splitlines() == [*lines, "THE SAME, bit for bit: 3 reports"]
    assert "not a result" in said.err
    assert (folder / "study.db").read_bytes() == before


def test_a_trial_that_failed_fails_in_the_same_way(reproduce):
    said = reproduce("own", "1")
    assert said.code == 0
    assert said.out == "THE SAME, bit for bit: 0 reports, and it failed in the same way\n"


def test_changed_code_is_named_where_results_differ(reproduce, changed, folder):
    changed("repeated_module.py", 'params["x"] + 0', '1.001 * params["x"] + 0')
    sys.modules.pop("repeated_module", None)
    said = reproduce("own", str(promoted(folder)))
    assert said.code == 1
    assert said.out.startswith("DIFFERENT at 1: loss ")
    assert " instead of " in said.out
    assert "not as it was: the files that the task names" in said.err


def test_a_failure_that_does_not_happen_again_is_a_difference(reproduce, changed):
    changed("repeated_module.py", "> 0.9", "> 2")
    sys.modules.pop("repeated_module", None)
    said = reproduce("own", "1")
    assert said.code == 1
    assert said.out == "DIFFERENT at 1: the trial had ended before\n"


def test_a_command_is_trained_again(reproduce, changed):
    said = reproduce("command", "0")
    assert said.code == 0, said
    assert said.out.endswith("THE SAME, bit for bit: 3 reports\n")
    changed("program.py", "x / epoch", "x / (epoch + 1)")
    said = reproduce("command", "0")
    assert said.code == 1
    assert "not as it was: the files that the task names" in said.err


def test_a_built_in_task_is_the_same_until_its_data_changes_or_goes(reproduce, changed, folder):
    said = reproduce("table", "0")
    assert said.code == 0, said
    assert "THE SAME, bit for bit" in said.out
    changed("table.csv", "3,low\n4,high", "3,high\n4,low")
    said = reproduce("table", "0")
    assert said.code == 1
    assert "not as it was: the files that the task names" in said.err
    (folder / "table.csv").rename(folder / "away.csv")
    try:
        gone = reproduce("table", "0")
    finally:
        (folder / "away.csv").rename(folder / "table.csv")
    assert gone.code == 2
    assert "table.csv" in gone.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("own", "9"), "no trial 9"),
        (("own", "2", "--trial", "1"), "--as keeps no model"),
        (("own", "x"), "'--as'"),
    ],
)
def test_what_cannot_be_repeated_is_refused(reproduce, words, told):
    said = reproduce(*words)
    assert said.code == 2
    assert told in said.err


def test_a_trial_without_a_report_cannot_be_repeated(run, save):
    save("young", [Trial(0, State.QUEUED, {"x": 0.1})], yaml.safe_dump(OWN))
    said = run("train", "young", "--as", "0")
    assert said.code == 2
    assert "trial 0 of young (queued) has reported nothing" in said.err
