"""`hpsearch reproduce`: real trials of small studies, trained once by workers and once more."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.cli.reproduce.causes import causes
from hpsearch.cli.reproduce.comparison import Comparison
from hpsearch.cli.reproduce.course import RecordedCourse, course_of
from hpsearch.cli.reproduce.training import Repeated
from hpsearch.creation.environment import environment
from hpsearch.creation.study import create_study
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment, Trial
from hpsearch.driver.loop import Driver
from hpsearch.store.reading.queries import TrialDetail, TrialRow
from hpsearch.store.store import Store
from hpsearch.study_file.reading import parse
from hpsearch.study_run.brain import build_study
from hpsearch.study_run.workers import worker_config
from support.running.local_executor import LocalExecutor
from trials.running.arithmetic import Arithmetic

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
    "search": {"sampler": "random", "pruner": {"kind": "promotion", "eta": 3}},
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
    def call(*arguments: str) -> Any:
        return run("reproduce", *arguments, "--storage", f"sqlite:///{folder}/study.db")

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


def test_a_trial_that_was_paused_is_paused_again_and_is_the_same(reproduce, folder) -> None:
    before = (folder / "study.db").read_bytes()
    said = reproduce("own", str(promoted(folder)))
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert lines[0] == "at 1: the same, 1 metric bit for bit"
    assert lines[2] == "at 3: the same, 3 metrics bit for bit", "loss, test_loss and final_loss"
    assert "3 reports compared; paused and continued once, as it was" in said.out
    assert said.out.endswith("THE SAME, bit for bit\n")
    assert "not a result" in said.err
    assert (folder / "study.db").read_bytes() == before


def test_a_trial_that_failed_fails_in_the_same_way(reproduce) -> None:
    said = reproduce("own", "1")
    assert said.code == 0
    assert "THE SAME: it failed in the same way (error: ValueError: x is too large" in said.out


def test_changed_code_is_named_first_where_results_differ(reproduce, changed, folder) -> None:
    changed("repeated_module.py", 'params["x"] + 0', '1.001 * params["x"] + 0')
    sys.modules.pop("repeated_module", None)
    said = reproduce("own", str(promoted(folder)), "--until", "2")
    assert said.code == 1
    assert "DIFFERENT from 1 on" in said.out
    assert "  1. the module of the function" in said.out
    assert "only up to 2: the trial reported until 3" in said.out
    assert reproduce("own", str(promoted(folder)), "--tolerance", "0.1").code == 0


def test_a_failure_that_does_not_happen_again_is_a_difference(reproduce, changed) -> None:
    changed("repeated_module.py", "> 0.9", "> 2")
    sys.modules.pop("repeated_module", None)
    said = reproduce("own", "1", "--format", "json")
    assert said.code == 1
    told = json.loads(said.out)
    assert told["same"] is False
    assert "and this did not" in told["ending"]
    assert told["reports"][0]["missing"] == "the trial had ended before"


def test_a_command_is_trained_again(reproduce, changed) -> None:
    said = reproduce("command", "0")
    assert said.code == 0, said
    assert said.out.endswith("THE SAME, bit for bit\n")
    changed("program.py", "x / epoch", "x / (epoch + 1)")
    said = reproduce("command", "0")
    assert said.code == 1
    assert "1. the files that the command names have changed" in said.out


def test_a_built_in_task_is_the_same_until_its_data_changes_or_goes(
    reproduce, changed, folder
) -> None:
    said = reproduce("table", "0", "--until", "1")
    assert said.code == 0, said
    assert "THE SAME, bit for bit" in said.out
    changed("table.csv", "3,low\n4,high", "3,high\n4,low")
    said = reproduce("table", "0", "--metric", "train_loss")
    assert said.code == 1
    assert "1. the data files have changed (SHA-256 " in said.out
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
        (("own", "2", "--until", "0.5"), "reported at 1 first"),
        (("own", "2", "--until", "nan"), "--until is nan"),
        (("own", "2", "--until", "0"), "give a resource above 0"),
        (("own", "2", "--tolerance", "nan"), "'--tolerance'"),
        (("own", "2", "--metric", "los"), "its metrics are: loss, seconds"),
        (("own",), "for example: hpsearch reproduce NAME 7"),
    ],
)
def test_what_cannot_be_repeated_is_refused(reproduce, words: tuple[str, ...], told: str) -> None:
    said = reproduce(*words)
    assert said.code == 2
    assert told in said.err


def test_a_trial_without_a_report_cannot_be_repeated(run, save) -> None:
    save("young", [Trial(0, State.QUEUED, {"x": 0.1})], yaml.safe_dump(OWN))
    said = run("reproduce", "young", "0")
    assert said.code == 2
    assert "trial 0 of young (queued) has reported nothing" in said.err


# --------------------------------------------------------------------------------------- its parts


def attempt(start: float, trained: bool = True) -> dict[str, Any]:
    return {"start_resource": start, "arithmetic": {"threads": 1} if trained else None}


def detail_of(state: State, starts: list[dict[str, Any]], **more: Any) -> TrialDetail:
    reports = [{"resource": at, "metrics": {"loss": at}} for at in (1.0, 2.0, 3.0)]
    return TrialDetail(TrialRow(0, state, {}, **more), reports, starts, [], [])


@pytest.mark.parametrize(
    ("starts", "parts"),
    [
        ([attempt(0.0), attempt(1.0), attempt(2.0)], (0.0, 1.0, 2.0)),
        ([attempt(0.0), attempt(2.0), attempt(1.0)], (0.0, 1.0)),
        ([attempt(0.0), attempt(1.0), attempt(0.0)], (0.0,)),
        ([attempt(0.0, trained=False), attempt(0.0), attempt(2.0, trained=False)], (0.0,)),
    ],
)
def test_what_was_trained_in_vain_is_not_repeated(starts, parts) -> None:
    assert course_of(detail_of(State.COMPLETE, starts), None).parts == parts


def test_a_failure_of_the_machine_is_not_asked_for() -> None:
    lost = detail_of(State.FAILED, [attempt(0.0)], error_kind=ErrorKind.LOST, error_text="gone")
    course = course_of(lost, None)
    assert (course.error, course.must_end, course.end) == (None, False, 3.0)
    assert course_of(detail_of(State.COMPLETE, []), 2.0).must_end is False


def test_a_trial_that_ends_earlier_or_later_is_different() -> None:
    course = RecordedCourse((0.0,), 2.0, {1.0: {"a": 1.0}, 2.0: {"a": float("nan")}}, True, None)
    same = Comparison(course)
    same.add(1.0, {"a": 1.0, "eval_runtime": 3.0})
    same.add(2.0, {"a": float("nan")})
    same.end(Repeated(finished="stopped early"))
    assert same.is_same(0.0)
    longer = Comparison(course)
    longer.add(1.0, {"a": 1.0})
    longer.end(Repeated())
    assert longer.ending == "the trial ended here by itself, and this did not"
    assert longer.reports[-1].missing == "it was not reported this time"


def test_causes_are_named_the_most_likely_first() -> None:
    spec = parse(yaml.safe_dump(OWN), base=Path("/nowhere"))
    packages = {"hpsearch": "0.1", "python": "3.11.1", "torch": "2.0"}
    before = Environment(1.0, "abc", packages, "CPU", "f" * 64)
    now = Environment(2.0, "abd", {**packages, "python": "3.12.1"}, "CPU", "e" * 64)
    computed = Arithmetic(2, device="one", versions={"numpy": "1", "torch": "2.0"})
    computes = Arithmetic(1, device="two", versions={"numpy": "2", "torch": "2.1"})
    found = causes(spec, (before, now), (computed, computes))
    begins = ["the module", "the code is of git", "device two", "threads 1", "torch", "numpy"]
    assert [phrase.startswith(begin) for phrase, begin in zip(found, begins, strict=False)] == (
        [True] * len(begins)
    )
    assert found[-1] == "python 3.12.1 instead of 3.11.1"
    assert causes(spec, (None, now), (None, computes)) == []
